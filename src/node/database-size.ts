/** Measures the size of a database on disk. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Total size of the files in a directory, in bytes. Files that vanish meanwhile are ignored. */
export async function bytesIn(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory).catch((): string[] => [])) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    if (found?.isFile() === true) bytes += found.size;
  }
  return bytes;
}
