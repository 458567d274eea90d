/** URLs of sessions: base, kind, token. Made for clients, and read when they come. */
import type { StreamingRequest } from './types.ts';

export interface NamedSession {
  readonly kind: StreamingRequest['kind'];
  readonly token: string;
}

const pathOfKind = { Exec: 'exec', Attach: 'attach', PortForward: 'portforward' } as const satisfies Record<
  StreamingRequest['kind'],
  string
>;
const kinds = ['Exec', 'Attach', 'PortForward'] as const;

export const urlOf = (baseUrl: string, { kind, token }: NamedSession): string =>
  `${baseUrl}/${pathOfKind[kind]}/${token}`;

/** The session that a request's target names; null when it is no URL of ours. */
export const sessionIn = (target: string): NamedSession | null => {
  const [path = ''] = target.split('?', 1);
  const [, word, token = ''] = path.split('/');
  const kind = kinds.find((candidate) => pathOfKind[candidate] === word);
  return kind === undefined ? null : { kind, token };
};
