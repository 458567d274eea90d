/** The door of the streaming server: what is turned away, and that a URL opens it once. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StreamingRequest } from '../../../src/adapters/streaming/types.ts';
import { startServer } from './support.ts';

const request: StreamingRequest = { kind: 'PortForward', podSandboxId: 'pod', ports: [] };

describe('the streaming server', () => {
  it('names its own address and the kind of session in the URL', async (t) => {
    const { server } = await startServer(t);
    assert.match(server.urlFor(request), /^http:\/\/127\.0\.0\.1:\d+\/portforward\/[A-Za-z0-9_-]{43}$/);
  });
});
