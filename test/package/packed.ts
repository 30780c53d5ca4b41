/** Lists the files that `npm pack` would include, without the network and without a build. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ROOT = join(
  import.meta.dirname,
  ...(import.meta.dirname.includes('/dist/') ? ['..'] : []),
  '..',
  '..',
);

export async function packedFiles(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    maxBuffer: 16 << 20,
  });
  // A list of packages, or since npm 11 one by name.
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, { files: { path: string }[] }>);
  return (packed?.files ?? []).map(({ path }) => path).toSorted();
}
