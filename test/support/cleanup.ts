/**
 * Undoing what a test set up: newest first, going on past failures, once. Every helper here takes the test's context
 * (or cleanupAfterAll() for what a whole file shares) and registers its own undoing.
 */
import { after } from 'node:test';

/** A node:test TestContext is one. */
export interface Owner {
  readonly after: (undo: () => Promise<void>) => void;
}

type Undo = () => void | Promise<void>;

const stacks = new WeakMap<Owner, Undo[]>();

const undoAll = async (stack: Undo[]): Promise<void> => {
  const errors: unknown[] = [];
  for (let undo = stack.pop(); undo !== undefined; undo = stack.pop()) {
    try {
      await undo();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, `cleaning up failed: ${errors.map(String).join('; ')}`);
};

/** Runs `undo` when the owner ends, before everything that was registered earlier. */
export const onCleanup = (owner: Owner, undo: Undo): void => {
  const known = stacks.get(owner);
  if (known !== undefined) {
    known.push(undo);
    return;
  }
  const stack = [undo];
  stacks.set(owner, stack);
  owner.after(() => undoAll(stack));
};

/** An owner that ends with the file or describe block in whose body it is called. */
export const cleanupAfterAll = (): Owner => {
  const undos: (() => Promise<void>)[] = [];
  after(() => undoAll(undos));
  return { after: (undo) => undos.push(undo) };
};
