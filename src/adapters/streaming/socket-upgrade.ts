/**
 * Connections that become WebSockets, and whatever speaks with these: loaded for the first of them, since most clients of a
 * runtime speak SPDY.
 */
import { choose, namesIn, socketPortProtocols, socketProcessProtocols } from './negotiate.ts';
import type { SessionContext } from './session.ts';
import { portsOf, servePortsOverSocket, serveProcessOverSocket, tunnelPorts } from './socket-sessions.ts';
import { type ContextOf, Refusal, refuse, type Upgrade } from './upgrade.ts';
import { createTakeOver, offeredProtocolsHeader } from './web-socket.ts';

const takeOver = createTakeOver();

/** To Exec, Attach or PortForward over WebSocket, by the protocol that the client offers first of those that are spoken here. */
export const upgradeToSocket = (
  { message, socket, head, request }: Upgrade,
  contextOf: ContextOf,
  log: SessionContext['log'],
): void => {
  const offered = namesIn(message.headers[offeredProtocolsHeader]);
  if (request.kind !== 'PortForward') {
    const chosen = choose(offered, socketProcessProtocols);
    if (chosen === null) {
      refuse(socket, Refusal.noProtocol);
      return;
    }
    takeOver(message, socket, head, chosen.name, log, (webSocket) => {
      void serveProcessOverSocket(webSocket, request, chosen.protocol, contextOf(socket));
    });
    return;
  }
  const chosen = choose(offered, socketPortProtocols);
  const isTunnel = chosen?.protocol === 'tunnel';
  const ports = isTunnel ? [] : portsOf(request, new URLSearchParams((message.url ?? '').split('?')[1]));
  if (chosen === null || ports === null) {
    refuse(socket, chosen === null ? Refusal.noProtocol : Refusal.badPorts);
    return;
  }
  takeOver(message, socket, head, chosen.name, log, (webSocket) => {
    const context = contextOf(socket);
    if (isTunnel) tunnelPorts(webSocket, request, context);
    else void servePortsOverSocket(webSocket, request, ports, chosen.protocol === 'base64', context);
  });
};
