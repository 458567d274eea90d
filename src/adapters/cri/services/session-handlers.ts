/**
 * The RPCs that allow sessions: Exec, Attach, PortForward. Each is a call of the engine; when it is granted, the reply
 * is an address that works once. The token in it goes to the client and nowhere else.
 */
import type { Caller } from '../../../domain/model/records.ts';
import type * as wire from '../../../wire/cri/api.ts';
import type { StreamingRequest } from '../../streaming/types.ts';
import type { Handlers } from '../context.ts';
import { checked, submit } from '../calls.ts';
import type { CriParts } from '../parts.ts';
import { find } from '../lookup.ts';

type SessionHandlers = Pick<
  Required<Handlers<typeof wire.RuntimeServiceDefinition>>,
  'exec' | 'attach' | 'portForward'
>;

export function sessionHandlers(parts: CriParts): SessionHandlers {
  const { view, streaming } = parts;
  // The ids were found by the call; a prefix may mean another object by the time the client comes.
  const containerIdOf = (text: string): string => find('container_id', view.state.containers, text)?.id ?? text;
  const sandboxIdOf = (text: string): string => find('pod_sandbox_id', view.state.sandboxes, text)?.id ?? text;
  const allowed = (allowedBy: string, { caller }: { readonly caller: Caller | null }) => ({ allowedBy, caller });
  const granted = async (request: StreamingRequest): Promise<{ url: string }> => ({
    url: await streaming.urlFor(request),
  });

  return {
    async exec({ containerId, cmd, tty, stdin, stdout, stderr }, context) {
      const newId = streaming.newId();
      const command = await checked(parts, 'Exec', () => parts.audited('Exec', containerId, cmd), context);
      const wanted = { ...command, tty, stdin, stdout, stderr };
      await submit(parts, 'Exec', () => ({ newId, containerId, ...wanted }), context);
      return granted({ kind: 'Exec', containerId: containerIdOf(containerId), ...wanted, ...allowed(newId, context) });
    },
    async attach({ containerId, tty, stdin, stdout, stderr }, context) {
      const newId = streaming.newId();
      const wanted = { tty, stdin, stdout, stderr };
      await submit(parts, 'Attach', () => ({ newId, containerId, ...wanted }), context);
      return granted({
        kind: 'Attach',
        containerId: containerIdOf(containerId),
        ...wanted,
        ...allowed(newId, context),
      });
    },
    async portForward({ podSandboxId, port: ports }, context) {
      const newId = streaming.newId();
      await submit(parts, 'PortForward', () => ({ newId, podSandboxId, ports }), context);
      return granted({
        kind: 'PortForward',
        podSandboxId: sandboxIdOf(podSandboxId),
        ports,
        ...allowed(newId, context),
      });
    },
  };
}
