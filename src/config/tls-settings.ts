/**
 * What `tls` in `cluster.json` may say: which files a node shows and trusts. Data and its check; it opens no file, and knows
 * nothing of connections.
 */
import { InvalidFieldError, objectAt } from '../api/fields.ts';

/** Paths of PEM files. Relative ones start at the folder of `cluster.json`, and `{id}` stands for the id of the node. */
export interface CertificatePaths {
  /** The certificate, and behind it those between it and the CA, if any. */
  readonly cert: string;
  readonly key: string;
}

export interface TlsSettings extends CertificatePaths {
  /** One certificate or several: who is signed by one of them may be a peer. */
  readonly ca: string;
  /** The HTTP and the Redis door speak TLS: with the same certificate, or with another one. Absent: they do not. */
  readonly doors?: true | CertificatePaths;
}

const PATH_CHARACTERS_MAX = 1_024;

/**
 * `{"ca", "cert", "key": string, "doors"?: boolean | {"cert", "key": string}}`.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateTlsSettings(value: unknown, path: string): TlsSettings {
  const settings = objectAt(value, path, ['ca', 'cert', 'key', 'doors'] satisfies (keyof TlsSettings)[]);
  const { doors = false } = settings;
  return {
    ca: filePath(settings['ca'], `${path}.ca`),
    ...certificatePaths(settings, path),
    ...(doors !== false && { doors: doors === true ? doors : ownPaths(doors, `${path}.doors`) }),
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
