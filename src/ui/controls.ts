/** Keys, buttons and the skip link: tells which action is meant, and does none itself. */
import { type Action, actionOf } from './actions.ts';
import { element } from './dom.ts';

export interface Controls {
  readonly lanes: HTMLElement;
  readonly help: HTMLDialogElement;
  readonly perform: (action: Action) => void;
}

const BUTTONS = ['back', 'forth', 'in', 'out', 'whole', 'live', 'steps', 'keys', 'close'] as const;

export const listenToControls = ({ lanes, help, perform }: Controls): void => {
  addEventListener('keydown', (event) => {
    const { key, ctrlKey, altKey, metaKey, target } = event;
    if (help.open) return;
    const action = actionOf({
      key,
      isModified: ctrlKey || altKey || metaKey,
      isInText: target instanceof HTMLInputElement,
      isOnLanes: target === lanes,
    });
    if (action === null) return;
    event.preventDefault();
    perform(action);
  });
  for (const id of BUTTONS) element(id, HTMLButtonElement).addEventListener('click', () => perform(id));
  // The address says what is in view: the browser would put the link's into it.
  element('skip', HTMLAnchorElement).addEventListener('click', (event) => {
    event.preventDefault();
    element('list', HTMLElement).focus();
  });
};
