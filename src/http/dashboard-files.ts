/**
 * The files of the dashboard as `npm run build` left them. They are read and compressed once, at the first request.
 * Only files that existed then are served, and no path of a request reaches the disk.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** One file, with its gzipped form. */
export interface DashboardFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

/** The files by name. */
export type DashboardFiles = ReadonlyMap<string, DashboardFile>;

/** The name of the page itself. */
export const INDEX = 'index.html';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const ETAG_CHARACTERS = 16;
/** The folders to search: beside the compiled code, or in a checkout whose sources run uncompiled. */
const FOLDERS = [
  join(import.meta.dirname, '..', '..', 'dashboard'),
  join(import.meta.dirname, '..', '..', 'dist', 'dashboard'),
];
const compressed = promisify(gzip);

let read: Promise<DashboardFiles> | undefined;

/** The files; empty if the dashboard was not built. @throws the system's error if a file cannot be read */
export async function dashboardFiles(): Promise<DashboardFiles> {
  const reading = (read ??= readFirst(FOLDERS));
  let isRead = false;
  try {
    const files = await reading;
    isRead = files.size > 0;
    return files;
  } finally {
    // Not remembered, because the files may appear or become readable later.
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
