/**
 * Certificates and keys as files hold them (PEM), looked at before a connection is tried: an error in the middle of a TLS
 * handshake names no file. Pure.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { messageOf } from '../../../domain/model/errors.ts';

interface PemFile {
  readonly path: string;
  readonly text: string;
}

const certificateIn = ({ text }: PemFile): X509Certificate | null => {
  try {
    return new X509Certificate(text);
  } catch {
    return null;
  }
};

const keyIn = ({ text }: PemFile): KeyObject | string => {
  try {
    return createPrivateKey(text);
  } catch (error) {
    return messageOf(error);
  }
};

/** What keeps a file from being an authority's certificate; null when nothing does. */
export const authorityProblem = (file: PemFile): string | null =>
  certificateIn(file) === null ? `${file.path} holds no certificate in PEM` : null;

/**
 * What keeps two files, or one that is both, from being a client's certificate and its key; null when nothing does.
 * `otherwise` says where else the key of a file that is no such one may be.
 */
export const clientPairProblem = (cert: PemFile, key: PemFile, otherwise: string): string | null => {
  const certificate = certificateIn(cert);
  if (certificate === null) return `${cert.path} holds no certificate in PEM`;
  const privateKey = keyIn(key);
  if (typeof privateKey === 'string') {
    const remedy = cert.path === key.path ? `; ${otherwise}` : '';
    return `${key.path} holds no private key in PEM that can be read (${privateKey})${remedy}`;
  }
  if (certificate.checkPrivateKey(privateKey)) return null;
  return `the key in ${key.path} is not that of the certificate in ${cert.path}`;
};
