/** What a node's configuration says of NRI: where plugins are and connect, and what each of them is allowed. Types only. */

/**
 * What a request comes to that a plugin gave no answer to: continue goes on without the plugin, fail fails the call. A
 * plugin that answers an error always fails the call.
 */
export type NriFailurePolicy = 'continue' | 'fail';

/** Of one plugin. What is null holds as for all, or as the plugin itself asks for it. */
export interface NriPluginSettings {
  readonly requestTimeoutMs: number | null;
  readonly failurePolicy: NriFailurePolicy | null;
  readonly missesMax: number | null;
  /** It is told of pods in these namespaces alone; null: of all. */
  readonly namespaces: readonly string[] | null;
  /** It is told of pods that have all these labels; none: of all. */
  readonly labels: Readonly<Record<string, string>>;
}

/** What the built-in validator judges by, with the names of the reference's keys. Recorded: absent is false, or none. */
export interface NriValidatorRules {
  readonly rejectOciHookAdjustment?: boolean;
  readonly rejectRuntimeDefaultSeccompAdjustment?: boolean;
  readonly rejectUnconfinedSeccompAdjustment?: boolean;
  readonly rejectCustomSeccompAdjustment?: boolean;
  readonly rejectNamespaceAdjustment?: boolean;
  readonly rejectSysctlAdjustment?: boolean;
  /** By name, or index and name. */
  readonly requiredPlugins?: readonly string[];
  /** By which a pod does without the required ones; empty: none can. */
  readonly tolerateMissingPluginsAnnotation?: string;
}

/** What decisions know of the configuration of NRI. */
export interface NriFacts {
  readonly validator: NriValidatorRules;
  /** So long after the start of the daemon creations wait for required plugins that are missing. */
  readonly startupWaitMs: number;
}

export interface NriSettings {
  readonly enabled: boolean;
  readonly socketPath: string;
  readonly pluginDir: string;
  readonly configDir: string;
  /** Only launched plugins; there is no socket. */
  readonly disableConnections: boolean;
  readonly registrationTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** A plugin that misses so many deadlines in a row is disconnected; 0: it never is for that. */
  readonly missesMax: number;
  /** By index and name ("10-logger") or by name ("logger"); the former wins. */
  readonly plugins: Readonly<Record<string, NriPluginSettings>>;
  readonly startupWaitMs: number;
  readonly defaultValidator: { readonly enable: boolean; readonly rules: NriValidatorRules };
}
