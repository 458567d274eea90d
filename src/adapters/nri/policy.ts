/** What holds for one plugin: the configuration's word for it, then the plugin's own, then what holds for all. */
import type { NriFailurePolicy, NriPluginSettings, NriSettings } from '../../domain/model/nri-settings.ts';
import type { FailurePolicy } from '../../wire/nri/api.ts';
import { type Binding, createBinding } from './binding.ts';
import type { PluginName } from './plugin-names.ts';
import { pluginName } from '../../domain/nri/plugins.ts';

export interface PluginPolicy {
  readonly requestTimeoutMs: number;
  readonly failurePolicy: NriFailurePolicy;
  /** null: it is never disconnected for what it missed. */
  readonly missesMax: number | null;
  readonly binding: Binding;
}

const settingsOf = (settings: NriSettings, plugin: PluginName): NriPluginSettings | undefined =>
  settings.plugins[pluginName(plugin)] ?? settings.plugins[plugin.name];

export const requestTimeoutOf = (settings: NriSettings, plugin: PluginName): number =>
  settingsOf(settings, plugin)?.requestTimeoutMs ?? settings.requestTimeoutMs;

/** `wished` is what the plugin asks for itself. */
export const policyOf = (
  settings: NriSettings,
  plugin: PluginName,
  wished: FailurePolicy | undefined,
): PluginPolicy => {
  const own = settingsOf(settings, plugin);
  const missesMax = own?.missesMax ?? (wished?.keepConnected === true ? 0 : settings.missesMax);
  return {
    requestTimeoutMs: requestTimeoutOf(settings, plugin),
    failurePolicy: own?.failurePolicy ?? (wished?.failRequest === true ? 'fail' : 'continue'),
    missesMax: missesMax === 0 ? null : missesMax,
    binding: createBinding(own),
  };
};
