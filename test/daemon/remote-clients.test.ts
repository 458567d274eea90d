/** Sessions whose thread has ended while they were being set up: nothing of them may wait, or stay open. */
import assert from 'node:assert/strict';
import { fstatSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRemoteClients } from '../../src/daemon/sessions/remote-clients.ts';
import { eventually } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const ended = new Error('The thread has ended.');
const wanted = { stdin: true, stdout: true, stderr: true };

/** Whether the descriptor is still the file's: its number may have gone to another one meanwhile. */
const isOpen = (fd: number, path: string): boolean => {
  try {
    return fstatSync(fd).ino === statSync(path).ino;
  } catch {
    return false;
  }
};

describe('clients of a thread that has ended', { timeout: 20_000 }, () => {
  it('are gone, and what was under way is not done', async () => {
    const clients = createRemoteClients(() => undefined);
    const client = clients.processClient(1, wanted);
    const pump = client.pumpOutput('stdout', -1);
    const heard = client.hear({ keeperPath: '/k', containerId: 'c' }, client.signal, () => undefined);
    const forwarded = clients.portClient(2).forward({ port: 80, netnsPath: null }, client.signal);
    clients.fail(ended);
    assert.equal(client.signal.aborted, true);
    await pump.ended;
    await assert.rejects(heard, ended);
    await assert.rejects(forwarded, ended);
  });

  it('are given nothing any more, and descriptors for them are closed', async (t) => {
    const path = join(await tempDir(t), 'file');
    const said: string[] = [];
    const clients = createRemoteClients(({ kind }) => void said.push(kind));
    const [client, port] = [clients.processClient(1, wanted), clients.portClient(2)];
    clients.fail(ended);
    const [input, output] = [openSync(path, 'w'), openSync(path, 'r')];
    const pumps = [client.pumpOutput('stdout', output), client.pumpInput(input)];
    await Promise.all(pumps.map((pump) => pump.ended));
    await eventually('closed descriptors', async () => !isOpen(output, path) && !isOpen(input, path));
    assert.deepEqual(
      pumps.map((pump) => pump.sizeBytes()),
      [0, 0],
    );
    await assert.rejects(
      client.hear({ keeperPath: '/k', containerId: 'c' }, client.signal, () => undefined),
      ended,
    );
    await assert.rejects(port.forward({ port: 80, netnsPath: null }, port.signal), ended);
    assert.equal(clients.processClient(3, wanted).signal.aborted, true);
    assert.deepEqual(said, []);
  });
});
