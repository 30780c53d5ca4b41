/** What a database takes on its disk. Looks only. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Of all files in a directory, in bytes; those that vanish meanwhile count as nothing. */
export async function bytesIn(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory).catch((): string[] => [])) {
    const found = await stat(join(directory, name)).catch(() => undefined);
    if (found?.isFile() === true) bytes += found.size;
  }
  return bytes;
}
