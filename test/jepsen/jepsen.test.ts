/** A short mix of everything that needs no privileges on real processes; `npm run jepsen` runs as long as you like. */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../cluster/harness.ts';
import { runOnce } from './run.ts';
import { verdictLines } from './verdict.ts';

const MILLIS = 45_000;
const directories: string[] = [];

describe('a cluster of real processes', () => {
  afterAll(async () => {
    for (const directory of directories) await rm(directory, { recursive: true });
  });

  it(
    'keeps its word while nodes are killed, paused, cut off and replaced',
    { timeout: 180_000 },
    async () => {
      const seed = randomInt(2 ** 31);
      const parent = await temporaryDirectory();
      directories.push(parent);
      const nemeses = ['kill', 'pause', 'partition', 'membership'];
      const command = `npm run jepsen -- --minutes ${MILLIS / 60_000} --nemesis ${nemeses.join(',')} --seed ${seed}`;
      console.log(`again: ${command}`);
      const { verdict, processes, isKept, summary } = await runOnce({
        nodes: 3,
        millis: MILLIS,
        nemeses,
        seed,
        directory: join(parent, 'run'),
        print: (line) => console.log(line),
      });
      const told = verdictLines({ ...verdict, checks: [...verdict.checks, processes] });
      if (!isKept) throw new Error(`${told.join('\n')}\nagain: ${command}`);
      expect(verdict.operations.granted).toBeGreaterThan(1_000);
      expect(summary.faults).toBeGreaterThan(0);
    },
  );
});
