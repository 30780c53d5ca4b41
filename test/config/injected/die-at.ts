/** Imported into a process before anything else: kills it at its n-th change of files, as a power cut would. */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

let left = Number(process.env['QUORATE_TEST_DIE_AT'] ?? Number.POSITIVE_INFINITY);

function step(): void {
  left -= 1;
  if (left <= 0) process.kill(process.pid, 'SIGKILL');
}

for (const name of ['mkdir', 'rename', 'rm', 'writeFile', 'open'] as const) {
  const original = fs[name] as (...args: unknown[]) => Promise<unknown>;
  Object.assign(fs, {
    async [name](...args: unknown[]): Promise<unknown> {
      step();
      return original.apply(fs, args);
    },
  });
}
syncBuiltinESMExports();
