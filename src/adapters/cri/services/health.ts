/**
 * The standard gRPC health service. The socket is there only while the daemon serves (C18), so whatever is known at
 * all is SERVING; a client that watches learns of the end by its connection.
 */
import { FailureError } from '../../../domain/model/errors.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import {
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
  type HealthDefinition,
} from '../../../wire/grpc/health/v1/health.ts';
import { following, type Handlers } from '../context.ts';

/** The name that stands for the server as a whole. */
const WHOLE = '';

const SERVING: HealthCheckResponse = { status: HealthCheckResponse_ServingStatus.SERVING };
const UNKNOWN: HealthCheckResponse = { status: HealthCheckResponse_ServingStatus.SERVICE_UNKNOWN };

/** @param services  full names of all that is served */
export function healthService(services: () => readonly string[]): Handlers<typeof HealthDefinition> {
  const isKnown = (service: string): boolean => service === WHOLE || services().includes(service);
  return {
    check({ service }) {
      if (isKnown(service)) return SERVING;
      throw new FailureError('UnknownService', `There is no service ${shown(service)} on this socket.`);
    },
    async watch({ service }, context, send) {
      await send(isKnown(service) ? SERVING : UNKNOWN);
      await following(context, async (signal) => {
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      });
    },
    list: () => ({ statuses: Object.fromEntries([WHOLE, ...services()].map((service) => [service, SERVING])) }),
  };
}
