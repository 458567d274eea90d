/** Sessions whose thread has ended while they were being set up: nothing of them may wait, or stay open. */
import assert from 'node:assert/strict';
import { fstatSync, openSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createRemoteClients } from '../../src/daemon/sessions/remote-clients.ts';
import { eventually } from '../support/pods.ts';

const ended = new Error('The thread has ended.');
const wanted = { stdin: true, stdout: true, stderr: true };

const isOpen = (fd: number): boolean => {
  try {
    fstatSync(fd);
    return true;
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
    const forwarded = clients.portClient(2).forward({ port: 80, forwarderPath: null }, client.signal);
    clients.fail(ended);
    assert.equal(client.signal.aborted, true);
    await pump.ended;
    await assert.rejects(heard, ended);
    await assert.rejects(forwarded, ended);
  });

  it('are given nothing any more, and descriptors for them are closed', async () => {
    const said: string[] = [];
    const clients = createRemoteClients(({ kind }) => void said.push(kind));
    const [client, port] = [clients.processClient(1, wanted), clients.portClient(2)];
    clients.fail(ended);
    const [output, input] = [openSync('/dev/null', 'r'), openSync('/dev/null', 'w')];
    const pumps = [client.pumpOutput('stdout', output), client.pumpInput(input)];
    await Promise.all(pumps.map((pump) => pump.ended));
    await eventually('closed descriptors', async () => !isOpen(output) && !isOpen(input));
    assert.deepEqual(
      pumps.map((pump) => pump.sizeBytes()),
      [0, 0],
    );
    await assert.rejects(
      client.hear({ keeperPath: '/k', containerId: 'c' }, client.signal, () => undefined),
      ended,
    );
    await assert.rejects(port.forward({ port: 80, forwarderPath: null }, port.signal), ended);
    assert.equal(clients.processClient(3, wanted).signal.aborted, true);
    assert.deepEqual(said, []);
  });
});
