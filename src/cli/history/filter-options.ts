/** The options that choose entries of a history by what they are, beside those of things: as typed, and as they are meant. */
import { nearest } from '../../config/nearest.ts';
import { callMethods } from '../../domain/call/catalogue.ts';
import { GrpcCode } from '../../domain/model/errors.ts';
import { misuse, type Option, type Values } from '../command.ts';
import type { Filter } from './filter.ts';

export const filterOptions = {
  method: {
    value: 'NAME',
    repeatable: true,
    about:
      'Only calls of this method, as CRI names it: RunPodSandbox, ExecSync, ListContainers. In any case. Given more than once: of any of them.',
  },
  uid: { value: 'UID', about: 'Only calls of this user, by number, as the kernel says.' },
  executable: {
    value: 'PROGRAM',
    about:
      'Only calls of this program: its path, or the end of it (crictl). Of calls that only read, those alone that an audit rule has recorded with their request.',
  },
  code: { value: 'CODE', about: 'Only calls that ended with this gRPC code: NOT_FOUND, or 5.' },
  text: { value: 'TEXT', about: 'Only what has this text in it, in any case: in requests, answers and messages.' },
  plugin: {
    value: 'PLUGIN',
    about:
      'Only that in which this NRI plugin had a part, NN-NAME or NAME: what it answered, beneath the calls that asked it, what it set, updated and evicted, and its comings and goings.',
  },
  exec: { about: 'Only commands in containers: ExecSync, Exec and its sessions.' },
  failed: {
    about:
      'Only what went wrong: calls that failed, commands and containers that exited with another status than 0, tasks and pods that were lost.',
  },
} as const satisfies Readonly<Record<string, Option>>;

const uidOf = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  if (!/^\d{1,10}$/.test(text)) throw misuse(`--uid ${text}: that is no user's number.`);
  return Number(text);
};

const codeOf = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  const wanted = text.toUpperCase();
  const found = Object.entries(GrpcCode).find(([name, code]) => name === wanted || String(code) === text);
  if (found === undefined) {
    const meant = nearest(text, Object.keys(GrpcCode));
    throw misuse(
      `--code ${text}: there is no such gRPC code; ${meant === null ? `there are ${Object.keys(GrpcCode).join(', ')}.` : `did you mean ${meant}?`}`,
    );
  }
  return found[1];
};

/** Throws for a user or code that is none. */
export const filterOf = (values: Values<typeof filterOptions>): Filter => ({
  methods: values.method ?? [],
  failedOnly: values.failed === true,
  callerUid: uidOf(values.uid),
  executable: values.executable ?? null,
  code: codeOf(values.code),
  execOnly: values.exec === true,
  text: values.text ?? null,
  plugin: values.plugin ?? null,
});

/** Calls that are recorded whole; a method that is none of them is looked for among those that only read. */
const RECORDED: readonly string[] = callMethods.map((method) => method.toLowerCase());

export const namesReads = (methods: readonly string[]): boolean =>
  methods.some((method) => !RECORDED.includes(method.toLowerCase()));
