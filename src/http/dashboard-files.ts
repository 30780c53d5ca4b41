/**
 * The files of the dashboard, as `npm run build` left them: read once, when somebody asks for the first time, and compressed then.
 * Only what was there at that time is known; no path of a request ever reaches the disk.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface DashboardFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

/** By name. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

export const INDEX = 'index.html';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const ETAG_CHARACTERS = 16;
/** Beside what is compiled; and of a checkout whose sources are run as they are. */
const FOLDERS = [
  join(import.meta.dirname, '..', '..', 'dashboard'),
  join(import.meta.dirname, '..', '..', 'dist', 'dashboard'),
];
const compressed = promisify(gzip);

let read: Promise<DashboardFiles> | undefined;

/** Empty where it was not built. @throws the error of the system if a file cannot be read */
export async function dashboardFiles(): Promise<DashboardFiles> {
  const reading = (read ??= readFirst(FOLDERS));
  let isRead = false;
  try {
    const files = await reading;
    isRead = files.size > 0;
    return files;
  } finally {
    // It may be built meanwhile, or readable.
    if (!isRead && read === reading) read = undefined;
  }
}

async function readFirst(folders: readonly string[]): Promise<DashboardFiles> {
  for (const folder of folders) {
    const files = await filesIn(folder);
    if (files.has(INDEX)) return files;
  }
  return new Map();
}

async function filesIn(folder: string): Promise<DashboardFiles> {
  const names = await readdir(folder).catch(() => []);
  const known = names.filter((name) => extname(name) in TYPES);
  const files = await Promise.all(
    known.map(async (name) => [name, await fileAt(join(folder, name))] as const),
  );
  return new Map(files);
}

async function fileAt(path: string): Promise<DashboardFile> {
  const bytes = await readFile(path);
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, ETAG_CHARACTERS);
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  return { type, etag: `"${digest}"`, bytes, gzipped: await compressed(bytes) };
}
