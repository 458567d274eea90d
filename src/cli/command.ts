/**
 * What a command is: its options and operands as data, from which its command line is parsed and its help is written,
 * and what it does. Every command is a module of its own that is loaded only when it is asked for.
 */
import type { Io } from './io.ts';

/** 0: done. 1: it failed. 2: the command line is wrong. */
export type ExitStatus = 0 | 1 | 2;

export interface Option {
  /** What stands for the value in the help; an option without one is a switch. */
  readonly value?: string;
  /** May be given more than once. */
  readonly repeatable?: true;
  /** Has to be given, which the command itself sees to: its help says so. */
  readonly required?: true;
  /** A letter. */
  readonly short?: string;
  readonly about: string;
}

export type Options = Readonly<Record<string, Option>>;

/** The values of options by their names: absent when not given. */
export type Values<O extends Options> = {
  readonly [K in keyof O]?: O[K] extends { readonly value: string }
    ? O[K] extends { readonly repeatable: true }
      ? readonly string[]
      : string
    : boolean;
};

export interface Operands {
  readonly name: string;
  readonly count: number;
  /** With so many it can do as well. */
  readonly countMin?: number;
}

export interface Command<O extends Options = Options> {
  /** As it is typed: "image pull". */
  readonly name: string;
  /** A few words, beginning with a small letter. */
  readonly summary: string;
  readonly description: readonly string[];
  readonly options: O;
  readonly operands?: Operands;
  /** When it ends with 0 and when with 1, where that needs saying. */
  readonly exitStatus?: string;
  /** Command lines and what they do. */
  readonly examples?: readonly (readonly [line: string, about: string])[];
  /** It reads journals: in which root directories. Where a daemon runs, that is recorded there. */
  readonly readsIn?: (values: Values<O>, operands: readonly string[]) => Promise<readonly string[]> | readonly string[];
  /** Its results may be longer than a screen, and come to an end. */
  readonly isPaged?: (values: Values<O>) => boolean;
  readonly run: (values: Values<O>, operands: readonly string[], io: Io) => Promise<ExitStatus>;
}

/** Keeps the options' exact types, so that `run` knows which values it gets. */
export const command = <const O extends Options>(definition: Command<O>): Command<O> => definition;

/** Ends a command with a sentence for the person who typed it. */
export class CliError extends Error {
  readonly exitStatus: Exclude<ExitStatus, 0>;
  constructor(exitStatus: Exclude<ExitStatus, 0>, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliError';
    this.exitStatus = exitStatus;
  }
}

/** The command line is wrong. */
export const misuse = (message: string): CliError => new CliError(2, message);

/** It could not be done. */
export const failure = (message: string, cause?: unknown): CliError => new CliError(1, message, { cause });
