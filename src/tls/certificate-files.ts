/**
 * The certificates of a cluster below its directory: `certs/` with `ca.crt`, and `node-<id>.crt` and `.key` for each node. The key of the
 * CA is apart, in `ca/ca.key`, as no node needs it. Private keys are for their owner alone. A CA is never replaced: every certificate of
 * the cluster depends on it.
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

/** What `cluster.json` says of certificates that were made here, doors included. */
export const OWN_TLS_SETTINGS: TlsSettings = {
  ca: `${FOLDER}/ca.crt`,
  cert: `${FOLDER}/node-{id}.crt`,
  key: `${FOLDER}/node-{id}.key`,
  doors: true,
};

export interface IssuedFiles {
  readonly cert: string;
  readonly key: string;
}

/** Where a new CA is put. Its key may be moved. */
export function authorityFiles(directory: string): IssuedFiles {
  return { cert: join(directory, FOLDER, 'ca.crt'), key: join(directory, AUTHORITY_FOLDER, 'ca.key') };
}

export function nodeFiles(directory: string, id: number): IssuedFiles {
  return { cert: join(directory, FOLDER, `node-${id}.crt`), key: join(directory, FOLDER, `node-${id}.key`) };
}

/** @throws ConfigError if there is one already, wherever its key is */
export async function storeAuthority(directory: string, { cert, key }: Issued): Promise<IssuedFiles> {
  const files = authorityFiles(directory);
  const [there] = [files.key, files.cert, formerKey(directory)].filter((path) => existsSync(path));
  if (there !== undefined)
    throw new ConfigError(
      there,
      'is there already: the certificates of all nodes depend on this CA, so it stays',
    );
  await makeFolder(directory, AUTHORITY_FOLDER);
  await makeFolder(directory, FOLDER);
  await naming(files.key, () => writeFile(files.key, key, { mode: OWNER_ONLY, flag: 'wx', flush: true }));
  await replaceFile(files.cert, cert, 0o644);
  return files;
}

/**
 * @param keyPath where the key was moved to; absent: it is where it was made
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
      ? `is not there, and the key of the CA is beside those of nodes: move ${former} to ${files.key}`
      : 'is not there: bring the key of the CA back to it, or say with --ca-key where it is kept',
  );
}

/** Where the key was until it got a folder of its own. */
function formerKey(directory: string): string {
  return join(directory, FOLDER, 'ca.key');
}

/** Takes the place of those that are there: that is how a certificate is renewed. */
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

/** Those of a cluster that is deleted: a CA that was made here, and what it may have signed. Another CA's are left alone. */
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

/** Whoever reads it meanwhile reads the old one or the new one. */
async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`;
  await naming(temporary, () => writeFile(temporary, text, { mode, flag: 'wx', flush: true }));
  await rename(temporary, path);
}
