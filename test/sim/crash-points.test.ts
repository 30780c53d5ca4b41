/** Short scripts, repeated with a crash at every single I/O boundary; `npm run sim -- --crash-points` does the same. */
import { describe, expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { scriptNamed, SCRIPTS } from './crash-points/all.ts';
import { GROUP_VARIANTS, nameOf, NODE_VARIANTS, variantNamed } from './crash-points/crash.ts';
import { type Enumeration, enumerateCrashes, runPoint } from './crash-points/enumerate.ts';
import { mutantOf } from './mutants/all.ts';

const hash = await loadHash32();

async function underMutant(id: string, script: string): Promise<Enumeration> {
  const { seams } = mutantOf(id);
  if (seams === undefined) throw new RangeError(`mutant ${id} is none of a node's surroundings`);
  return enumerateCrashes({ script: scriptNamed(script), hash, seams });
}

describe('a crash at every I/O boundary', () => {
  test.each(SCRIPTS)(
    '$name: nothing is lost, charged twice or left undone',
    async (script) => {
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
    },
    120_000,
  );

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

  test.each(['snapshot', 'join'])('%s installs a snapshot of several chunks', async (name) => {
    const { points, chunksInstalled } = await runPoint({ script: scriptNamed(name), hash });
    expect(chunksInstalled).toBeGreaterThanOrEqual(3);
    expect(points.filter(({ kind }) => kind === 'read').length).toBeGreaterThanOrEqual(chunksInstalled);
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
  ])('mutant %s in %s, by what a node says before it may', async (id, script) => {
    const { failure } = await underMutant(id, script);
    expect(failure?.violation).toMatch(/on disk/);
  });

  test.each([
    ['M5b', 'propose'],
    ['M6c', 'propose'],
  ])('mutant %s in %s, which nothing but a crash shows', async (id, script) => {
    const { failure } = await underMutant(id, script);
    const at = failure?.crash?.at ?? 0;
    expect(at).toBeGreaterThan(1);
    expect(failure?.replay).toContain(`--crash-points ${script} --at ${at} --variant`);
  });
});
