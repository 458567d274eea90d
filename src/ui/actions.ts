/** What one can do with the page, by key: buttons do the same. Pure. */

export const ACTIONS = [
  ...(['back', 'forth', 'in', 'out', 'whole', 'live', 'steps', 'filter', 'keys', 'close'] as const),
  ...(['up', 'down', 'page up', 'page down', 'before', 'after', 'open', 'first', 'newest'] as const),
] as const;

export type Action = (typeof ACTIONS)[number];

const ANYWHERE: Readonly<Record<string, Action>> = {
  '0': 'whole',
  '+': 'in',
  '=': 'in',
  '-': 'out',
  l: 'live',
  s: 'steps',
  f: 'filter',
  '?': 'keys',
  Escape: 'close',
};

/** While the lanes have the focus: elsewhere these keys scroll, and go from one thing to the next. */
const ON_LANES: Readonly<Record<string, Action>> = {
  ArrowLeft: 'back',
  ArrowRight: 'forth',
  ArrowUp: 'up',
  ArrowDown: 'down',
  PageUp: 'page up',
  PageDown: 'page down',
  ',': 'before',
  '.': 'after',
  Enter: 'open',
  Home: 'first',
  End: 'newest',
};

export interface Pressed {
  readonly key: string;
  /** Ctrl, Alt or Meta: the browser's own. */
  readonly isModified: boolean;
  /** Where what is typed is text. */
  readonly isInText: boolean;
  readonly isOnLanes: boolean;
}

/** null: the key is not ours. */
export const actionOf = ({ key, isModified, isInText, isOnLanes }: Pressed): Action | null => {
  if (isModified || isInText) return null;
  return ANYWHERE[key] ?? (isOnLanes ? (ON_LANES[key] ?? null) : null);
};
