/** Every name that a call of a history can have: the RPCs of all services on the socket, and the sessions of clients. */
import { nearest } from '../../config/nearest.ts';
import { callMethods } from '../../domain/call/catalogue.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../../wire/cri/api.ts';
import { DaemonDefinition } from '../../wire/scribe/v1/daemon.ts';
import { ImagesDefinition } from '../../wire/scribe/v1/images.ts';
import { misuse } from '../command.ts';

interface Service {
  readonly methods: Readonly<Record<string, { readonly name: string }>>;
}

const SERVICES: readonly Service[] = [
  RuntimeServiceDefinition,
  ImageServiceDefinition,
  DaemonDefinition,
  ImagesDefinition,
];

const knownMethods = (): readonly string[] => [
  ...new Set([...SERVICES.flatMap(({ methods }) => Object.values(methods).map(({ name }) => name)), ...callMethods]),
];

/** Names that no call can have. */
export const unknownMethods = (methods: readonly string[]): readonly string[] => {
  const known = knownMethods().map((name) => name.toLowerCase());
  return methods.filter((method) => !known.includes(method.toLowerCase()));
};

/** A name that nothing bears is a slip, where no record has it: a newer scribe may have written those. Throws for it. */
export const refuseUnknown = (methods: readonly string[]): void => {
  const [unknown] = unknownMethods(methods);
  if (unknown === undefined) return;
  const known = knownMethods();
  const meant = nearest(unknown, known);
  throw misuse(
    `--method ${unknown}: there is no such method; ${meant === null ? `there are ${known.join(', ')}.` : `did you mean ${meant}?`}`,
  );
};
