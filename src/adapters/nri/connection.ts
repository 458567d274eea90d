/**
 * A plugin's connection from its first byte until it is configured: who it is, what it wants to hear of, and that all in
 * time. What is not as it has to be ends the connection, and nothing else.
 */
import type { Duplex } from 'node:stream';
import { messageOf } from '../../domain/model/errors.ts';
import type { NriSettings } from '../../domain/model/nri-settings.ts';
import { within } from '../../platform/rpc/timeout.ts';
import { createTtrpcClient, type TtrpcClient } from '../../platform/ttrpc/client.ts';
import { callMethod } from '../../platform/ttrpc/method.ts';
import {
  type ContainerUpdate,
  type FailurePolicy,
  PluginDefinition,
  type UpdateContainersRequest,
} from '../../wire/nri/api.ts';
import { hooksOfMask, NRI_VERSION } from './hooks.ts';
import { createMux, PLUGIN_CONN, RUNTIME_CONN } from './mux.ts';
import type { NriHook } from './plugins.ts';
import type { PluginName } from './plugin-names.ts';
import { pluginName } from '../../domain/nri/plugins.ts';
import { requestTimeoutOf } from './policy.ts';
import { serveRuntime } from './runtime-service.ts';

export interface PluginConnection {
  readonly client: TtrpcClient;
  /** Bytes for the plugin that it has not read yet. */
  readonly backlogBytes: () => number;
  /** Resolves with what ended it, when that was neither side's close. */
  readonly closed: Promise<Error | undefined>;
  readonly close: () => void;
}

/** A plugin that has registered and is configured. */
export interface Registration extends PluginName {
  readonly connection: PluginConnection;
  readonly nriVersion: string;
  readonly events: readonly NriHook[];
  /** It subscribed to all there is: to what it does not know as well. */
  readonly subscribedToAll: boolean;
  /** What it wants to be done where it does not answer. */
  readonly wished: FailurePolicy | undefined;
}

export interface RegistrationOptions {
  readonly settings: NriSettings;
  /** Our own. */
  readonly version: string;
  /** Of a launched plugin; null: the plugin says who it is. */
  readonly launched: (PluginName & { readonly config: string }) | null;
  /** Told who it is, once it has said so, whatever becomes of it. */
  readonly onNamed: (plugin: PluginName) => void;
  readonly takeUpdates: (request: UpdateContainersRequest) => Promise<readonly ContainerUpdate[]>;
}

const configure = async (
  client: TtrpcClient,
  plugin: PluginName,
  { settings, version, launched }: RegistrationOptions,
) => {
  const timeoutMs = requestTimeoutOf(settings, plugin);
  const request = {
    config: launched?.config ?? '',
    runtimeName: 'scribe',
    runtimeVersion: version,
    registrationTimeout: String(settings.registrationTimeoutMs),
    requestTimeout: String(timeoutMs),
    NRIVersion: NRI_VERSION,
  };
  const { fullName: service, methods } = PluginDefinition;
  const { events: mask, failurePolicy } = await callMethod(client, service, methods.configure, request, { timeoutMs });
  const events = hooksOfMask(mask);
  if (events === null) throw new Error(`it subscribes to events that there are not (0x${(mask >>> 0).toString(16)})`);
  return { events, subscribedToAll: mask === 0, wished: failurePolicy };
};

/** Owns `socket`. Rejects, with all closed, when the plugin does not register in time or can't be configured. */
export const registerPlugin = async (socket: Duplex, options: RegistrationOptions): Promise<Registration> => {
  const { settings, launched, takeUpdates } = options;
  const mux = createMux(socket);
  const service = mux.connection(PLUGIN_CONN);
  const client = createTtrpcClient(service, launched === null ? 'the plugin' : pluginName(launched));
  const registered = serveRuntime(mux.connection(RUNTIME_CONN), { namesItself: launched === null, takeUpdates });
  const gone = mux.closed.then((cause) => {
    throw new Error(`its connection closed${cause === undefined ? '' : `: ${messageOf(cause)}`}`);
  });
  gone.catch(() => undefined);
  const late = (): Error => new Error(`it did not register within ${settings.registrationTimeoutMs} ms`);
  try {
    const request = await within(Promise.race([registered, gone]), settings.registrationTimeoutMs, late);
    const plugin = launched ?? { index: request.pluginIdx, name: request.pluginName };
    const { index, name } = plugin;
    options.onNamed(plugin);
    const subscription = await configure(client, plugin, options);
    return {
      index,
      name,
      nriVersion: request.NRIVersion.slice(0, 128),
      ...subscription,
      connection: { client, backlogBytes: () => service.writableLength, closed: mux.closed, close: mux.close },
    };
  } catch (error) {
    mux.close();
    throw error;
  }
};
