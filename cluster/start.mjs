// `npm start`: checks that the ports are free, prepares the checkout, and runs the compiled command in this process.
// Uses only Node built-ins. The ports come first, so that nothing is installed or built for a cluster that cannot
// start.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { takenAmong, wantedAddresses } from './ports.mjs';

/** The same value as in src/cli/explain-error.ts. */
const EXIT_UNAVAILABLE = 69;

const taken = await takenAmong(wantedAddresses(process.argv.slice(2)));
if (taken.length > 0) {
  console.error(
    `quorate: in use: ${taken.join(', ')}; nothing was installed or built. Stop what listens there, or choose other ports: ` +
      '`npm start -- --base-port N` moves a cluster that exists, too, and with --data DIR it starts another one',
  );
  process.exit(EXIT_UNAVAILABLE);
}
const setUp = spawnSync(process.execPath, [fileURLToPath(new URL('setup.mjs', import.meta.url))], {
  stdio: 'inherit',
});
if (setUp.status !== 0) process.exit(setUp.status ?? 1);
await import(new URL('../dist/cluster/start.js', import.meta.url).href);
