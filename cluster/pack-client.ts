/** `npm run pack:client`: packs `@quorate/client` into the working directory, as `npm pack` does the whole. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleClientPackage } from './client-package.ts';

const folder = mkdtempSync(join(tmpdir(), 'quorate-client-'));
try {
  assembleClientPackage(folder);
  // npm lists the files, and says the name of the tarball last.
  execFileSync('npm', ['pack', folder], { stdio: 'inherit' });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
