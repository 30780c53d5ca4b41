/**
 * `npm run pack:client`: packs `@quorate/client` into the working directory, as `npm pack` does for the main package.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleClientPackage } from './client-package.ts';

const folder = mkdtempSync(join(tmpdir(), 'quorate-client-'));
try {
  assembleClientPackage(folder);
  // npm prints the list of files, and then the name of the tarball.
  execFileSync('npm', ['pack', folder], { stdio: 'inherit' });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
