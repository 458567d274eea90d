/** Names and indices of plugins, as NRI allows them. How both are said together is `pluginName` of the domain. */

const INDEX = /^[0-9]{2}$/;
const NAME = /^[A-Za-z0-9_.+-]{1,128}$/;

export interface PluginName {
  /** Two digits. */
  readonly index: string;
  readonly name: string;
}

/** What is wrong with it; null: nothing. */
export const problemOfName = ({ index, name }: PluginName): string | null => {
  if (!NAME.test(name))
    return `${JSON.stringify(name.slice(0, 128))} is no name of a plugin: letters, digits and "_.+-" make one`;
  if (!INDEX.test(index))
    return `${JSON.stringify(index.slice(0, 128))} is no index of a plugin: it has to have two digits`;
  return null;
};

/** "10-logger" in its parts; null when it is no such name. */
export const parsePluginName = (file: string): PluginName | null => {
  const [, index = '', name = ''] = /^([^-]*)-(.*)$/s.exec(file) ?? [];
  return problemOfName({ index, name }) === null ? { index, name } : null;
};
