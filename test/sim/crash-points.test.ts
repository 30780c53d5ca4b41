/**
 * Short scripts, repeated with a crash at a handful of their I/O boundaries: the same ones every time, and for one
 * script some that differ from run to run. `npm run test:long` takes more, and `npm run sim -- --crash-points` all.
 */
import { describe, expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { scriptNamed, SCRIPTS } from './crash-points/all.ts';
import { crashPoints } from './crash-points/command.ts';
import { GROUP_VARIANTS, nameOf, NODE_VARIANTS, variantNamed } from './crash-points/crash.ts';
import { type CrashScript, enumerateCrashes, runPoint } from './crash-points/enumerate.ts';
import { underMutant, underSeams } from './crash-points/under-bugs.ts';
import { changedLoads } from './mutants/seams.ts';

const hash = await loadHash32();
/** `npm test` takes this fraction of the sample of `npm run test:long`. */
const FRACTION = 1 / 12;
const SEEDS = 1_000_000;

async function expectKept(script: CrashScript, seed?: number): Promise<void> {
  const sample = Math.ceil(script.sample * FRACTION);
  const { points, runs, failure } = await enumerateCrashes({ script, hash, sample, seed });
  expect(failure?.violation, `replay: ${failure?.replay ?? ''}`).toBeUndefined();
  // The number of boundaries differs with every draw. This many show that the script ran.
  expect(points.length).toBeGreaterThan(50);
  expect(runs).toBeGreaterThan(sample / 2);
}

describe('a crash at an I/O boundary', () => {
  test.each(SCRIPTS)('$name: nothing is lost, charged twice or left undone', async (script) => {
    await expectKept(script);
  });

  test('is survived by a script and a timing that differ from run to run', async () => {
    const seed = Math.floor(Math.random() * SEEDS);
    await expectKept(SCRIPTS[seed % SCRIPTS.length]!, seed);
  });

  test('every kind of boundary is met on every node', async () => {
    const script = scriptNamed('propose');
    const { points } = await runPoint({ script, hash });
    for (const kind of ['load', 'write', 'durable', 'delivered', 'send', 'receive'] as const) {
      const nodes = new Set(points.filter((point) => point.kind === kind).map(({ node }) => node));
      expect(nodes.size, `nodes that reach ${kind}`).toBe(3);
    }
    for (const kind of ['asked', 'answer'] as const) {
      const count = points.filter((point) => point.kind === kind).length;
      expect(count, `boundaries of kind ${kind}`).toBeGreaterThanOrEqual(5);
    }
  });

  test.each(['snapshot', 'node-joins'])('%s installs a snapshot of several chunks', async (name) => {
    const { points, chunksInstalled } = await runPoint({ script: scriptNamed(name), hash });
    expect(chunksInstalled).toBeGreaterThanOrEqual(3);
    expect(points.filter(({ kind }) => kind === 'read').length).toBeGreaterThanOrEqual(chunksInstalled);
  });

  test('a node that joins meets every kind of boundary of a node', async () => {
    const { points } = await runPoint({ script: scriptNamed('node-joins'), hash });
    const kinds = new Set(points.filter(({ node }) => node === 4).map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['delivered', 'durable', 'load', 'read', 'receive', 'send', 'write']);
  });

  test('a node that is to crash twice crashes again during its recovery', async () => {
    const lines: string[] = [];
    const crash = { at: 20, ...variantNamed('one-lost-twice', NODE_VARIANTS) };
    const say = (line: string): void => void lines.push(line);
    const { points, violation } = await runPoint({ script: scriptNamed('node-joins'), hash, crash, say });
    const { node } = points.at(-1)!;
    expect(violation).toBeUndefined();
    expect(lines.filter((line) => line.endsWith(`node ${node} is down`)).length).toBe(2);
    expect(lines.filter((line) => line.includes(`once more: `)).length).toBe(1);
  });

  test('the command says at which boundary it crashed, or that there is no such boundary', async () => {
    const lines: string[] = [];
    const runAt = async (at: number): Promise<boolean> =>
      await crashPoints({ script: 'propose', at, variant: 'one-lost-once' }, (line) => lines.push(line));
    expect([await runAt(20), await runAt(100_000)]).toEqual([true, false]);
    expect(lines[0]).toBe('propose: everything held after the crash at boundary 20');
    expect(lines[1]).toMatch(/^propose: there is no boundary 100000: the run has 1 to \d+$/);
  });

  test('a variant can be found by its name', () => {
    expect([GROUP_VARIANTS.length, NODE_VARIANTS.length]).toEqual([10, 8]);
    for (const variants of [GROUP_VARIANTS, NODE_VARIANTS]) {
      for (const variant of variants) expect(variantNamed(nameOf(variant), variants)).toEqual(variant);
    }
  });
});

describe('bugs that the enumeration catches', () => {
  test.each([
    ['M2', 'propose'],
    ['M2b', 'snapshot'],
    ['M5', 'propose'],
    ['M2b', 'node-joins'],
  ])('mutant %s in %s, by a message that a node sends too early', async (id, script) => {
    const { failure } = await underMutant(id, script);
    expect(failure?.violation).toMatch(/on disk/);
  });

  test.each([
    ['M5b', 'propose'],
    ['M6c', 'node-is-replaced'],
    ['M19', 'node-comes-and-goes'],
  ])('mutant %s in %s, which only a crash shows', async (id, script) => {
    const { failure } = await underMutant(id, script);
    const at = failure?.crash?.at ?? 0;
    expect(at).toBeGreaterThan(0);
    expect(failure?.replay).toContain(`--crash-points ${script} --at ${at} --variant`);
  });

  test.each(['node-joins', 'node-is-replaced'])(
    'in %s: a new process that forgot under which placement it holds its replicas',
    async (name) => {
      const { failure } = await underSeams(
        changedLoads((stored) => ({ ...stored, placement: 0 })),
        name,
      );
      expect(failure?.crash).toBeDefined();
      expect(failure?.replay).toContain(`--crash-points ${name} --at`);
    },
  );
});
