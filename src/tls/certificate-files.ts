/**
 * The certificate files of a cluster, below its directory: `certs/` contains `ca.crt`, and `node-<id>.crt` and `.key`
 * of each node. The key of the CA is in a separate folder, `ca/ca.key`, because no node needs it. Only their owner
 * may read private keys. A CA is never replaced, because every certificate of the cluster depends on it.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { naming } from '../../storage/file-errors.ts';
import { ConfigError } from '../config/config.ts';
import { AUTHORITY_NAME } from './node-name.ts';
import type { Issued } from './issue.ts';
import type { TlsSettings } from '../config/tls-settings.ts';

const FOLDER = 'certs';
const AUTHORITY_FOLDER = 'ca';
const OWNER_ONLY = 0o600;

/** The TLS settings in `cluster.json` for certificates that were made here, also for the API listeners. */
export const OWN_TLS_SETTINGS: TlsSettings = {
  ca: `${FOLDER}/ca.crt`,
  cert: `${FOLDER}/node-{id}.crt`,
  key: `${FOLDER}/node-{id}.key`,
  listeners: true,
};

/** The paths of a certificate and its key. */
export interface IssuedFiles {
  readonly cert: string;
  readonly key: string;
}

/** The paths of a new CA. Its key may be moved elsewhere later. */
export function authorityFiles(directory: string): IssuedFiles {
  return { cert: join(directory, FOLDER, 'ca.crt'), key: join(directory, AUTHORITY_FOLDER, 'ca.key') };
}

/** The paths of a node's certificate. */
export function nodeFiles(directory: string, id: number): IssuedFiles {
  return { cert: join(directory, FOLDER, `node-${id}.crt`), key: join(directory, FOLDER, `node-${id}.key`) };
}

/** Stores a new CA. @throws ConfigError if there is one already, even if its key was moved */
export async function storeAuthority(directory: string, { cert, key }: Issued): Promise<IssuedFiles> {
  const files = authorityFiles(directory);
  const [there] = [files.key, files.cert, formerKey(directory)].filter((path) => existsSync(path));
  if (there !== undefined)
    throw new ConfigError(
      there,
      'is there already: the certificates of all nodes depend on this CA, so it is not replaced',
    );
  await makeFolder(directory, AUTHORITY_FOLDER);
  await makeFolder(directory, FOLDER);
  await naming(files.key, () => writeFile(files.key, key, { mode: OWNER_ONLY, flag: 'wx', flush: true }));
  await replaceFile(files.cert, cert, 0o644);
  return files;
}

/**
 * Reads the CA.
 *
 * @param keyPath the path its key was moved to; absent: where it was created
 * @throws ConfigError if there is no CA, or its key is elsewhere
 */
export async function readAuthority(directory: string, keyPath?: string): Promise<Issued> {
  const files = authorityFiles(directory);
  const path = keyPath ?? files.key;
  const cert = await readIfAny(files.cert);
  if (cert === undefined)
    throw new ConfigError(files.cert, 'is not there; make the CA of the cluster with `quorate certs init`');
  const key = await readIfAny(path);
  if (key !== undefined) return { cert, key };
  const former = formerKey(directory);
  throw new ConfigError(
    path,
    existsSync(former)
      ? `is not there, but the key of the CA is in the folder of the nodes' keys: move ${former} to ${files.key}`
      : 'is not there: put the key of the CA there, or give its path with --ca-key',
  );
}

/** The path of the CA's key in earlier versions, before it had its own folder. */
function formerKey(directory: string): string {
  return join(directory, FOLDER, 'ca.key');
}

/** Stores a node's certificate and replaces an existing one, which is how a certificate is renewed. */
export async function storeNodeCertificate(
  directory: string,
  id: number,
  { cert, key }: Issued,
): Promise<IssuedFiles> {
  const files = nodeFiles(directory, id);
  await makeFolder(directory, FOLDER);
  await replaceFile(files.key, key, OWNER_ONLY);
  await replaceFile(files.cert, cert, 0o644);
  return files;
}

/**
 * Deletes the certificates of a cluster that is deleted: a CA that was made here, and the certificates it may have
 * signed. Files of another CA are left alone.
 */
export async function deleteCertificates(directory: string): Promise<void> {
  const ca = await readFile(authorityFiles(directory).cert).catch(() => undefined);
  if (ca === undefined || !new X509Certificate(ca).subject.includes(`CN=${AUTHORITY_NAME} `)) return;
  const folder = join(directory, FOLDER);
  for (const name of await readdir(folder)) {
    if (/^(?:ca|node-\d+)\.(?:crt|key)$/.test(name)) await rm(join(folder, name));
  }
  await rm(authorityFiles(directory).key, { force: true });
}

async function makeFolder(directory: string, name: string): Promise<void> {
  await mkdir(join(directory, name), { recursive: true, mode: 0o700 });
}

async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await naming(path, () => readFile(path, 'latin1'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Replaces a file atomically: a reader sees the old or the new content. */
async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`;
  await naming(temporary, () => writeFile(temporary, text, { mode, flag: 'wx', flush: true }));
  await rename(temporary, path);
}
