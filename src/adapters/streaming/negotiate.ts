/**
 * Which protocols are spoken over which transport, and choosing one from what a client offers, in its order. The names
 * are those of the Kubernetes API.
 */

export const protocolVersionHeader = 'x-stream-protocol-version';
export const acceptedVersionsHeader = 'x-accepted-stream-protocol-versions';
export const spdyUpgrade = 'SPDY/3.1';

/** What a protocol of exec and attach can do. */
export interface ProcessProtocol {
  readonly hasStructuredStatus: boolean;
  readonly hasResize: boolean;
  /** Over WebSocket: a client can end its stdin and go on reading. */
  readonly hasHalfClose: boolean;
  readonly isBase64: boolean;
}

const protocolOf = (version: number, isBase64 = false): ProcessProtocol => ({
  hasStructuredStatus: version >= 4,
  hasResize: version >= 3,
  hasHalfClose: version >= 5,
  isBase64,
});

type Protocols<T> = ReadonlyMap<string, T>;

export const spdyProcessProtocols: Protocols<ProcessProtocol> = new Map([
  ['v4.channel.k8s.io', protocolOf(4)],
  ['v3.channel.k8s.io', protocolOf(3)],
  ['v2.channel.k8s.io', protocolOf(2)],
  ['channel.k8s.io', protocolOf(1)],
]);

export const spdyPortProtocols: Protocols<null> = new Map([['portforward.k8s.io', null]]);

/** The empty name stands for a client that offers none. Over WebSocket every version has the resize channel. */
export const socketProcessProtocols: Protocols<ProcessProtocol> = new Map([
  ['v5.channel.k8s.io', protocolOf(5)],
  ['v4.channel.k8s.io', protocolOf(4)],
  ['v4.base64.channel.k8s.io', protocolOf(4, true)],
  ['v3.channel.k8s.io', protocolOf(3)],
  ['v2.channel.k8s.io', protocolOf(2)],
  ['channel.k8s.io', protocolOf(1)],
  ['base64.channel.k8s.io', protocolOf(1, true)],
  ['', protocolOf(1)],
]);

/** 'tunnel' carries SPDY/3.1 in messages; the others have two channels per port. */
export const socketPortProtocols: Protocols<'tunnel' | 'binary' | 'base64'> = new Map([
  ['SPDY/3.1+portforward.k8s.io', 'tunnel'],
  ['v4.channel.k8s.io', 'binary'],
  ['v4.base64.channel.k8s.io', 'base64'],
  ['', 'binary'],
]);

/** Names in a header whose values are separated by commas. */
export const namesIn = (header: string | readonly string[] | undefined): readonly string[] => {
  const lines = header === undefined ? [] : typeof header === 'string' ? [header] : header;
  return lines
    .flatMap((line) => line.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '');
};

const portMax = 65_535;

/** A port as headers and queries spell it; null if it is none. */
export const portFromText = (text: string): number | null => {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= portMax ? port : null;
};

export interface Chosen<T> {
  readonly name: string;
  readonly protocol: T;
}

/** The first of the client's protocols that is spoken here. */
export const choose = <T>(offered: readonly string[], spoken: Protocols<T>): Chosen<T> | null => {
  for (const name of offered.length === 0 ? [''] : offered) {
    const protocol = spoken.get(name);
    if (protocol !== undefined) return { name, protocol };
  }
  return null;
};
