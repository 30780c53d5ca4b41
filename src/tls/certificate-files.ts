/**
 * The certificates of a cluster below its directory: `certs/ca.crt`, `ca.key`, and `node-<id>.crt` and `.key` for each node.
 * Private keys are for their owner alone. The key of a CA is never replaced: every certificate of the cluster depends on it.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { naming } from '../../storage/file-errors.ts';
import { ConfigError } from '../config/config.ts';
import { AUTHORITY_NAME } from './node-name.ts';
import type { Issued } from './issue.ts';
import type { TlsSettings } from '../config/tls-settings.ts';

const FOLDER = 'certs';
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

export function authorityFiles(directory: string): IssuedFiles {
  return { cert: join(directory, FOLDER, 'ca.crt'), key: join(directory, FOLDER, 'ca.key') };
}

export function nodeFiles(directory: string, id: number): IssuedFiles {
  return { cert: join(directory, FOLDER, `node-${id}.crt`), key: join(directory, FOLDER, `node-${id}.key`) };
}

/** @throws ConfigError if there is one already */
export async function storeAuthority(directory: string, { cert, key }: Issued): Promise<IssuedFiles> {
  const files = authorityFiles(directory);
  await makeFolder(directory);
  try {
    await naming(files.key, () => writeFile(files.key, key, { mode: OWNER_ONLY, flag: 'wx', flush: true }));
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EEXIST') throw error;
    throw new ConfigError(
      files.key,
      'is there already: the certificates of all nodes depend on it, so it stays',
    );
  }
  await replaceFile(files.cert, cert, 0o644);
  return files;
}

/** @throws ConfigError if there is none, or its key is kept elsewhere */
export async function readAuthority(directory: string): Promise<Issued> {
  const files = authorityFiles(directory);
  return { cert: await readOne(files.cert), key: await readOne(files.key) };
}

/** Takes the place of those that are there: that is how a certificate is renewed. */
export async function storeNodeCertificate(
  directory: string,
  id: number,
  { cert, key }: Issued,
): Promise<IssuedFiles> {
  const files = nodeFiles(directory, id);
  await makeFolder(directory);
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
}

async function makeFolder(directory: string): Promise<void> {
  await mkdir(join(directory, FOLDER), { recursive: true, mode: 0o700 });
}

async function readOne(path: string): Promise<string> {
  try {
    return await readFile(path, 'latin1');
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error;
    throw new ConfigError(path, 'is not there; make the CA of the cluster with `quorate certs init`');
  }
}

/** Whoever reads it meanwhile reads the old one or the new one. */
async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`;
  await naming(temporary, () => writeFile(temporary, text, { mode, flag: 'wx', flush: true }));
  await rename(temporary, path);
}
