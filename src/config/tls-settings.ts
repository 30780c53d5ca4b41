/** The setting `tls` in `cluster.json`: the certificate files of a node. Type and validation; it opens no file. */
import { InvalidFieldError, objectAt } from '../api/fields.ts';

/**
 * Paths of PEM files. Relative paths start at the directory of `cluster.json`; `{id}` is replaced by the node id.
 */
export interface CertificatePaths {
  /** The certificate, followed by intermediate certificates, if any. */
  readonly cert: string;
  readonly key: string;
}

/** The certificates for peers and listeners. */
export interface TlsSettings extends CertificatePaths {
  /** One or more CA certificates. A node with a certificate signed by one of them may be a peer. */
  readonly ca: string;
  /**
   * The HTTP and RESP listeners use TLS, with the same certificate (`true`) or another one. Absent: they do not.
   */
  readonly listeners?: true | CertificatePaths;
}

const PATH_CHARACTERS_MAX = 1_024;

/**
 * Checks settings of the form `{"ca", "cert", "key": string, "listeners"?: boolean | {"cert", "key": string}}`.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateTlsSettings(value: unknown, path: string): TlsSettings {
  const settings = objectAt(value, path, ['ca', 'cert', 'key', 'listeners'] satisfies (keyof TlsSettings)[]);
  const { listeners = false } = settings;
  return {
    ca: filePath(settings['ca'], `${path}.ca`),
    ...certificatePaths(settings, path),
    ...(listeners !== false && {
      listeners: listeners === true ? listeners : ownPaths(listeners, `${path}.listeners`),
    }),
  };
}

function ownPaths(value: unknown, path: string): CertificatePaths {
  if (typeof value !== 'object')
    throw new InvalidFieldError(path, 'must be true, false, or an object with cert and key');
  return certificatePaths(objectAt(value, path, ['cert', 'key'] satisfies (keyof CertificatePaths)[]), path);
}

function certificatePaths(settings: Record<string, unknown>, path: string): CertificatePaths {
  return {
    cert: filePath(settings['cert'], `${path}.cert`),
    key: filePath(settings['key'], `${path}.key`),
  };
}

function filePath(value: unknown, path: string): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > PATH_CHARACTERS_MAX)
    throw new InvalidFieldError(
      path,
      `must be the path of a file, of 1 to ${PATH_CHARACTERS_MAX} characters`,
    );
  return value;
}
