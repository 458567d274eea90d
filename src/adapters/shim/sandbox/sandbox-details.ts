/**
 * What the sandbox service of a pod's shim has to say beyond what the journal knows: SandboxStatus (verbose) and
 * SandboxMetrics, for verbose replies only. Bounded in size and time, asked once at a time per pod, and never an error: a
 * shim that does not tell keeps nobody from the rest.
 */
import { messageOf } from '../../../domain/model/errors.ts';
import type { SandboxStatusResponse } from '../../../wire/runtime/sandbox/v1/sandbox.ts';
import type { Metric } from '../../../wire/types/metrics.ts';
import type { ShimContext } from '../context.ts';
import { quoted } from '../failures.ts';
import { statusOfSandbox } from './sandbox-service.ts';

const infoCharsMax = 65_536;
const metricsBytesMax = 65_536;

export type SandboxDetails = (podSandboxId: string) => Promise<Readonly<Record<string, unknown>>>;

/** As many entries as fit, in the shim's order; the number of those that do not. */
const boundedInfo = (info: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> => {
  const kept: Record<string, string> = {};
  let chars = 0;
  let left = 0;
  for (const [key, value] of Object.entries(info)) {
    if (chars + key.length + value.length > infoCharsMax) left += 1;
    else {
      chars += key.length + value.length;
      kept[key] = value;
    }
  }
  return { info: kept, ...(left === 0 ? {} : { infoLeftOut: left }) };
};

const statusDetails = (status: SandboxStatusResponse | null): Readonly<Record<string, unknown>> =>
  status === null ? { state: 'unknown to the shim' } : { state: quoted(status.state), ...boundedInfo(status.info) };

/** Their form is the shim's own: they are passed on as they are, if they are not too large. */
const metricsDetails = (metrics: Metric | undefined): Readonly<Record<string, unknown>> => {
  const data = metrics?.data;
  if (data === undefined) return {};
  const typeUrl = quoted(data.typeUrl);
  if (data.value.length > metricsBytesMax) return { metrics: { typeUrl, sizeBytes: data.value.length } };
  return { metrics: { typeUrl, value: data.value.toString('base64') } };
};

export const createSandboxDetails = ({ shims, timings }: ShimContext): SandboxDetails => {
  const asking = new Map<string, ReturnType<SandboxDetails>>();

  const ask: SandboxDetails = async (podSandboxId) => {
    try {
      const client = await shims.clientOf(podSandboxId);
      const status = statusOfSandbox(client, podSandboxId, true, timings.detailsMs).then(statusDetails);
      const metrics = client.sandbox.metrics({ sandboxId: podSandboxId }, timings.detailsMs).then(
        (answer) => metricsDetails(answer.metrics),
        (error: unknown) => ({ metrics: quoted(messageOf(error)) }),
      );
      const told = await Promise.all([status, metrics]);
      return { ...told[0], ...told[1] };
    } catch (error) {
      return { problem: quoted(messageOf(error)) };
    }
  };

  return (podSandboxId) => {
    const asked =
      asking.get(podSandboxId) ??
      ask(podSandboxId).finally(() => {
        asking.delete(podSandboxId);
      });
    asking.set(podSandboxId, asked);
    return asked;
  };
};
