/** Short scripts, repeated with a crash at a sample of their I/O boundaries; `npm run sim -- --crash-points` takes all. */
import { describe, expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { scriptNamed, SCRIPTS } from './crash-points/all.ts';
import { GROUP_VARIANTS, nameOf, NODE_VARIANTS, variantNamed } from './crash-points/crash.ts';
import { type Enumeration, enumerateCrashes, runPoint } from './crash-points/enumerate.ts';
import { mutantOf } from './mutants/all.ts';
import { changedLoads } from './mutants/seams.ts';
import type { Seams } from './node-world.ts';

const hash = await loadHash32();
/** A bug ends an enumeration soon: it may look at more than a run that finds nothing. */
const SAMPLES_PER_BUG = 4;

async function underMutant(id: string, name: string): Promise<Enumeration> {
  const { seams } = mutantOf(id);
  if (seams === undefined) throw new RangeError(`mutant ${id} is none of a node's surroundings`);
  return underSeams(seams, name);
}

async function underSeams(seams: Seams, name: string): Promise<Enumeration> {
  const script = scriptNamed(name);
  return enumerateCrashes({ script, hash, seams, sample: script.sample && SAMPLES_PER_BUG * script.sample });
}

describe('a crash at every I/O boundary', () => {
  test.each(SCRIPTS)('$name: nothing is lost, charged twice or left undone', async (script) => {
    const { points, runs, millisMax, failure } = await enumerateCrashes({
      script,
      hash,
      sample: script.sample,
    });
    console.log(
      `${script.name}: ${points.length} boundaries, ${runs} runs of at most ${Math.ceil(millisMax)} simulated ms`,
    );
    expect(failure?.violation, `tell it again with: ${failure?.replay ?? ''}`).toBeUndefined();
    // How many there are differs with every draw; this many show that the script was run.
    expect(points.length).toBeGreaterThan(50);
    expect(runs).toBeGreaterThan(script.sample === undefined ? points.length * 5 : script.sample / 2);
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

  test('who is to die twice dies once more on its way back', async () => {
    const lines: string[] = [];
    const crash = { at: 20, ...variantNamed('one-lost-twice', NODE_VARIANTS) };
    const say = (line: string): void => void lines.push(line);
    const { points, violation } = await runPoint({ script: scriptNamed('node-joins'), hash, crash, say });
    const { node } = points.at(-1)!;
    expect(violation).toBeUndefined();
    expect(lines.filter((line) => line.endsWith(`node ${node} is down`)).length).toBe(2);
    expect(lines.filter((line) => line.includes(`once more: `)).length).toBe(1);
  });

  test('variants have names that lead back to them', () => {
    expect([GROUP_VARIANTS.length, NODE_VARIANTS.length]).toEqual([10, 8]);
    for (const variants of [GROUP_VARIANTS, NODE_VARIANTS]) {
      for (const variant of variants) expect(variantNamed(nameOf(variant), variants)).toEqual(variant);
    }
  });
});

describe('what the enumeration catches', () => {
  test.each([
    ['M2', 'propose'],
    ['M2b', 'snapshot'],
    ['M5', 'propose'],
    ['M2b', 'node-joins'],
  ])('mutant %s in %s, by what a node says before it may', async (id, script) => {
    const { failure } = await underMutant(id, script);
    expect(failure?.violation).toMatch(/on disk/);
  });

  test.each([
    ['M5b', 'propose'],
    ['M6c', 'propose'],
    ['M6c', 'node-is-replaced'],
    ['M19', 'node-comes-and-goes'],
  ])('mutant %s in %s, which nothing but a crash shows', async (id, script) => {
    const { failure } = await underMutant(id, script);
    const at = failure?.crash?.at ?? 0;
    expect(at).toBeGreaterThan(0);
    expect(failure?.replay).toContain(`--crash-points ${script} --at ${at} --variant`);
  });

  test.each(['node-joins', 'node-leaves', 'node-is-replaced'])(
    'in %s, that a new process has forgotten under which placement it holds its replicas',
    async (name) => {
      const { failure } = await underSeams(
        changedLoads((stored) => ({ ...stored, placement: 0 })),
        name,
      );
      expect(failure?.crash).toBeDefined();
      expect(failure?.replay).toContain(`--crash-points ${name} --at`);
    },
  );

  test('in node-joins, that a new process goes by the members its group began with', async () => {
    const forgetful = changedLoads(({ snapshot, ...rest }) =>
      snapshot === undefined ? rest : { ...rest, snapshot: { ...snapshot, voters: [1, 2, 3], learners: [] } },
    );
    const { failure } = await underSeams(forgetful, 'node-joins');
    expect(failure?.crash).toBeDefined();
  });
});
