/** A plugin in TypeScript, over a real socket, that can do all that no honest plugin does. */
import type { Socket } from 'node:net';
import { createMux, type Mux, PLUGIN_CONN, RUNTIME_CONN } from '../../../src/adapters/nri/mux.ts';
import type { NriHook } from '../../../src/adapters/nri/plugins.ts';
import { dial } from '../../../src/platform/linux/dial.ts';
import { createTtrpcClient } from '../../../src/platform/ttrpc/client.ts';
import { callMethod } from '../../../src/platform/ttrpc/method.ts';
import { type MethodHandler, serveTtrpc } from '../../../src/platform/ttrpc/server.ts';
import {
  ConfigureRequest,
  ConfigureResponse,
  PluginDefinition,
  RuntimeDefinition,
  SynchronizeRequest,
  SynchronizeResponse,
  type UpdateContainersRequest,
  type UpdateContainersResponse,
} from '../../../src/wire/nri/api.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';

export type DoubleHandlers = Partial<
  Record<NriHook | 'Configure' | 'Synchronize' | 'Shutdown' | 'StateChange', MethodHandler>
>;

export interface DoubleOptions {
  readonly index?: string;
  readonly name?: string;
  /** A mask; 0: all. */
  readonly events?: number;
  readonly policy?: ConfigureResponse['failurePolicy'];
  readonly nriVersion?: string;
  /** A hook that has none answers nothing at all: an empty message. */
  readonly handlers?: DoubleHandlers;
  /** Methods that the plugin does not have. */
  readonly lacks?: readonly string[];
}

export interface PluginDouble {
  readonly socket: Socket;
  readonly mux: Mux;
  /** The names of the methods that were called, in order. */
  readonly calls: string[];
  readonly configured: Promise<ConfigureRequest>;
  readonly synchronizations: SynchronizeRequest[];
  readonly register: () => Promise<unknown>;
  readonly update: (request: UpdateContainersRequest) => Promise<UpdateContainersResponse>;
}

const timeoutMs = 20_000;
const nothing = async (): Promise<Uint8Array> => new Uint8Array();

/** Connects, and registers only when it is told to. */
export const connectDouble = async (
  owner: Owner,
  socketPath: string,
  {
    index = '10',
    name = 'double',
    events = 0,
    policy,
    nriVersion = 'v0.12.5',
    handlers = {},
    lacks = [],
  }: DoubleOptions = {},
): Promise<PluginDouble> => {
  const socket = await dial({ path: socketPath }, timeoutMs);
  const mux = createMux(socket);
  onCleanup(owner, () => mux.close());
  const calls: string[] = [];
  const synchronizations: SynchronizeRequest[] = [];
  const { promise: configured, resolve } = Promise.withResolvers<ConfigureRequest>();
  const own: DoubleHandlers = {
    Configure: async (payload) => {
      resolve(ConfigureRequest.decode(payload));
      return ConfigureResponse.encode({ events, failurePolicy: policy }).finish();
    },
    Synchronize: async (payload) => {
      const request = SynchronizeRequest.decode(payload);
      synchronizations.push(request);
      return SynchronizeResponse.encode({ update: [], more: request.more }).finish();
    },
  };
  const methods = Object.fromEntries(
    Object.values(PluginDefinition.methods)
      .map((method) => method.name)
      .filter((method) => !lacks.includes(method))
      .map((method): [string, MethodHandler] => {
        const handle = handlers[method] ?? own[method] ?? nothing;
        return [
          method,
          (payload, context) => {
            calls.push(method);
            return handle(payload, context);
          },
        ];
      }),
  );
  void serveTtrpc(mux.connection(PLUGIN_CONN), { [PluginDefinition.fullName]: methods });
  const runtime = createTtrpcClient(mux.connection(RUNTIME_CONN), 'the runtime');
  const { fullName: service, methods: of } = RuntimeDefinition;
  return {
    socket,
    mux,
    calls,
    configured,
    synchronizations,
    register: () =>
      callMethod(
        runtime,
        service,
        of.registerPlugin,
        { pluginName: name, pluginIdx: index, NRIVersion: nriVersion },
        { timeoutMs },
      ),
    update: (request) => callMethod(runtime, service, of.updateContainers, request, { timeoutMs }),
  };
};
