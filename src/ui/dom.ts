/** Small helpers for the page's elements. Text is only ever set as text: nothing of a journal becomes markup. */

/** The element of this id; the page's markup has it. */
export const element = <T extends Element>(id: string, type: abstract new () => T): T => {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`The page has no ${type.name} "${id}".`);
  return found;
};

interface Attributes {
  readonly class?: string;
  readonly text?: string;
}

export const made = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { class: className, text }: Attributes = {},
  ...children: readonly Node[]
): HTMLElementTagNameMap[K] => {
  const node = document.createElement(tag);
  if (className !== undefined) node.className = className;
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
};

/** A button that looks like a link and opens a record. */
export const recordButton = (seq: number, open: (seq: number) => void): HTMLButtonElement => {
  const button = made('button', { class: 'link', text: String(seq) });
  button.type = 'button';
  button.setAttribute('aria-label', `Record ${seq}`);
  button.addEventListener('click', () => open(seq));
  return button;
};

/** Sets what a live region says. What comes by itself, again and again, is not read out: nobody could listen to it. */
export const say = (region: HTMLElement, text: string, isReadOut: boolean): void => {
  region.setAttribute('aria-live', isReadOut ? 'polite' : 'off');
  if (region.textContent !== text) region.textContent = text;
};
