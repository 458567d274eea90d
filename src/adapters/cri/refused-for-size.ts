/**
 * Hears of requests that grpc-js refuses because they are larger than the server takes: that happens before there is a
 * message, so no handler is asked, and the call would leave no record (C10). Changes nothing about the answer.
 */
import { type ServerInterceptor, status } from '@grpc/grpc-js';

const TOO_LARGE = /larger than/;

/** @param heard  told the RPC and the remote address of its connection */
export const refusedForSize =
  (heard: (rpc: string, peer: string) => Promise<void>): ServerInterceptor =>
  (method, call) => {
    // Statuses of its own are sent past every interceptor, by this function of the innermost call.
    const send = call.sendStatus.bind(call);
    call.sendStatus = (sent) => {
      if (sent.code !== status.RESOURCE_EXHAUSTED || !TOO_LARGE.test(sent.details)) return send(sent);
      // The answer waits for its record, as that of every refused request does.
      const answer = (): void => send(sent);
      heard(method.path.split('/').at(-1) ?? '', call.getPeer()).then(answer, answer);
    };
    // No call in between: it would cost every RPC what only these need.
    return call as ReturnType<ServerInterceptor>;
  };
