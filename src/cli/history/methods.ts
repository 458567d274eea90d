/** Every name that a call of a history can have: the RPCs of all services on the socket, and the sessions of clients. */
import { callMethods } from '../../domain/call/catalogue.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../../wire/cri/api.ts';
import { DaemonDefinition } from '../../wire/scribe/v1/daemon.ts';
import { ImagesDefinition } from '../../wire/scribe/v1/images.ts';

interface Service {
  readonly methods: Readonly<Record<string, { readonly name: string }>>;
}

const SERVICES: readonly Service[] = [
  RuntimeServiceDefinition,
  ImageServiceDefinition,
  DaemonDefinition,
  ImagesDefinition,
];

export const knownMethods = (): readonly string[] => [
  ...new Set([...SERVICES.flatMap(({ methods }) => Object.values(methods).map(({ name }) => name)), ...callMethods]),
];
