/** The colours of the pictures: those of the style sheet, light or dark as the browser is, or those that its user chose. */
import { TONES, type Tone } from './kinds.ts';

export interface Palette {
  readonly paper: string;
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly life: string;
  readonly runs: string;
  readonly chosen: string;
  readonly tones: Readonly<Record<Tone, string>>;
}

/** When any of it may be another. */
export const PALETTE_QUERIES = ['(prefers-color-scheme: dark)', '(forced-colors: active)'] as const;

/** A canvas takes no light-dark(): the browser is asked what it means now. */
export const readPalette = (): Palette => {
  const probe = document.body.appendChild(document.createElement('span'));
  // Where a user forces colours, every text has the same: the style sheet says which of them stands for which.
  probe.style.setProperty('forced-color-adjust', 'none');
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const [wrong = '', call = '', event = '', step = ''] = TONES.map(colour);
  const palette = {
    paper: colour('paper'),
    ink: colour('ink'),
    faint: colour('faint'),
    line: colour('line'),
    life: colour('life'),
    runs: colour('runs'),
    chosen: colour('chosen'),
    tones: { wrong, call, event, step },
  };
  probe.remove();
  return palette;
};
