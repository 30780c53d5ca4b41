import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../cluster/harness.ts';
import { cleanUpAfterKilled, CLUSTER_PREFIX } from './killed-runs.ts';
import { lacks } from './machine.ts';
import { Volume } from './volume.ts';

const MODULE = new URL('../../dist/test/jepsen/killed-runs.js', import.meta.url).href;
/** A run that claims a directory and has a paused process in it. */
const PROGRAM = `
  import { spawn } from 'node:child_process';
  const directory = process.argv[1];
  const { claimDirectory } = await import('${MODULE}');
  claimDirectory(directory);
  const node = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', directory + '/machine-1'], { stdio: 'ignore' });
  node.once('spawn', () => {
    node.kill('SIGSTOP');
    console.log(node.pid);
  });
  setInterval(() => {}, 1000);
`;

it.skipIf(process.platform !== 'linux')(
  'a run cleans up after a killed one: paused nodes, mounts, its directory',
  async () => {
    const parent = await mkdtemp(join(tmpdir(), 'quorate-test-'));
    const directory = join(parent, `${CLUSTER_PREFIX}a`);
    const unclaimed = join(parent, `${CLUSTER_PREFIX}b`);
    mkdirSync(directory);
    mkdirSync(unclaimed);
    const run = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = (await once(run.stdout, 'data')) as [Buffer];
    const pid = Number(output.toString());
    const mount = join(directory, 'volumes', 'node-1');
    const canMount = lacks.tmpfs() === undefined;
    if (canMount) Volume.tmpfs(mount, 1 << 20);
    try {
      expect(cleanUpAfterKilled(parent)).toEqual([]);
      run.kill('SIGKILL');
      await once(run, 'exit');
      const line = `cleaned up after a killed run: ${directory}, 1 processes, ${canMount ? 1 : 0} mounts`;
      expect(cleanUpAfterKilled(parent)).toEqual([line]);
      // Its new parent process may not have reaped it yet.
      await eventually('the paused process is gone', () => {
        try {
          return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(' Z ') ? true : undefined;
        } catch {
          return true;
        }
      });
      expect([existsSync(directory), existsSync(unclaimed)]).toEqual([false, true]);
      expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(directory);
    } finally {
      run.kill('SIGKILL');
      spawnSync('umount', ['--lazy', mount]);
      await rm(parent, { recursive: true });
    }
  },
);
