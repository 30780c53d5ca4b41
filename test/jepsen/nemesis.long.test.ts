import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allowAt } from '../cluster/harness.ts';
import { seeded } from '../raft/seeded.ts';
import { ClusterUnderTest } from './cluster-under-test.ts';
import { createContext, NEMESES, usableNemeses } from './nemesis/all.ts';
import { runMix } from './nemesis/mix.ts';
import { Claims, FAMILIES, type Family, hold, type Nemesis } from './nemesis/nemesis.ts';
import { hearsOnRing } from './nemesis/network.ts';

const RULE = { id: 'default', limit: 1_000_000, windowMillis: 60_000, clock: 'cluster' } as const;
/** One nemesis of each family. The other ones use the same actions at other times. */
const SAMPLE = [
  'kill-majority',
  'partition-bridge',
  'wall-clock-strobe',
  'sync-error',
  'directory-lost',
  'replace-node',
];

function nemesis(family: Family, run: Nemesis['run'], name: string = family): Nemesis {
  return { name, family, needs: () => undefined, run };
}

describe('nemeses', () => {
  let cluster: ClusterUnderTest;
  let client: Promise<void> | undefined;
  let isAsking = true;
  beforeAll(async () => {
    cluster = await ClusterUnderTest.create({
      nodes: 3,
      spares: 3,
      rules: [RULE],
      random: seeded(1),
      partitions: 4,
      volumes: false,
    });
    await cluster.startAll();
    await cluster.ready();
    client = (async () => {
      for (let i = 0; isAsking; i += 1) {
        const [id = 1] = cluster.members.slice(i % cluster.members.length);
        await allowAt(cluster.node(id).machine.address.http.port, { userId: `u${i % 50}` }).catch(
          () => undefined,
        );
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
  });
  afterAll(async () => {
    isAsking = false;
    await client;
    await cluster.dispose();
  });

  it('inject their fault, heal it, and log both', async () => {
    const logFile = join(cluster.directory, 'nemesis.jsonl');
    const context = createContext({ cluster, seed: 3, logFile, tempo: 0.02 });
    const sample = NEMESES.filter(({ name }) => SAMPLE.includes(name));
    const usable = usableNemeses(sample, console.log);
    for (const nemesis of usable) {
      await nemesis.run(context);
      await cluster.ready();
    }
    expect(cluster.unexpectedExits).toEqual([]);
    const lines = readFileSync(logFile, 'utf8').trim().split('\n');
    const events = lines.map((line) => JSON.parse(line) as { event: string; name: string; atMillis: number });
    for (const event of ['start', 'end']) {
      const names = events.filter((line) => line.event === event).map(({ name }) => name);
      expect(names).toEqual(usable.map(({ name }) => name));
    }
    // Two nodes were replaced, and ids are never reused.
    expect([cluster.members.length, cluster.spares]).toEqual([3, [6]]);
    expect(context.claims.mayDamage).toBe(true);
  });

  it('damage no more nodes than a partition may lose', () => {
    const claims = new Claims(cluster);
    expect(claims.mayDamage).toBe(true);
    claims.damage(1);
    expect(claims.mayDamage).toBe(false);
    claims.repaired(1);
    expect(claims.mayDamage).toBe(true);
  });

  it.each([4, 5, 6, 7])('leave each of %i nodes on a ring a majority of its own', (count) => {
    const ring = Array.from({ length: count }, (_, i) => i + 1);
    const heard = ring.map((to) => ring.filter((from) => hearsOnRing(ring, from, to)));
    expect(Math.min(...heard.map(({ length }) => length))).toBeGreaterThan(count / 2);
    expect(Math.max(...heard.map(({ length }) => length))).toBeLessThan(count);
    expect(new Set(heard.map(String)).size).toBe(count);
  });

  it('never harm one node at the same time', () => {
    const claims = new Claims(cluster);
    expect(claims.take([1, 2, 3], 2)).toEqual([1, 2]);
    expect(claims.take([1, 2, 3], 2)).toEqual([3]);
    claims.release([2]);
    expect(claims.take([1, 2, 3], 3)).toEqual([2]);
  });

  it('have unique names, and say what they need', () => {
    const names = NEMESES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    const lacking: Nemesis = {
      name: 'earthquake',
      family: 'disk',
      needs: () => 'needs a fault line',
      run: async () => undefined,
    };
    const lines: string[] = [];
    expect(usableNemeses([lacking], (line) => lines.push(line))).toEqual([]);
    expect(lines).toEqual(['skipped: earthquake (needs a fault line)']);
  });

  /** The faults of a mix and which ran together, without a cluster. */
  async function mixed(seed: number): Promise<{ story: string[]; sizes: number[]; doubles: number }> {
    const context = createContext({ cluster, seed, tempo: 0 });
    const story: string[] = [];
    const sizes: number[] = [];
    const running: Family[] = [];
    let doubles = 0;
    const fake = (family: Family, name: string): Nemesis =>
      nemesis(
        family,
        async (own) => {
          if (running.includes(family)) doubles += 1;
          running.push(family);
          story.push(`${name} ${own.random(1_000)}`);
          sizes.push(running.length);
          await hold(own, 1, 1);
          await new Promise((resolve) => setTimeout(resolve, 5));
          running.splice(running.indexOf(family), 1);
        },
        name,
      );
    const fakes = FAMILIES.flatMap((family) => [fake(family, `${family}-a`), fake(family, `${family}-b`)]);
    await runMix(context, fakes, 20);
    return { story: story.sort(), sizes, doubles };
  }

  describe('in a mix', () => {
    it('run at the same time, at most one per family, and are the same for the same seed', async () => {
      const [first, again, other] = await Promise.all([mixed(1), mixed(1), mixed(2)]);
      expect(again.story).toEqual(first.story);
      expect(other.story).not.toEqual(first.story);
      expect(first.doubles).toBe(0);
      expect(Math.max(...first.sizes)).toBe(3);
    });

    it('end the run, after everything else healed, if one does not heal', async () => {
      let healed = 0;
      const bad = nemesis('disk', async () => {
        throw new Error('node 2 does not start again');
      });
      const good = nemesis('clock', async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        healed += 1;
      });
      const context = createContext({ cluster, seed: 5, tempo: 0 });
      await expect(runMix(context, [bad, good], 100)).rejects.toThrow('node 2 does not start again');
      const before = healed;
      await new Promise((resolve) => setTimeout(resolve, 40));
      expect(healed).toBe(before);
    });

    it('begin no fault after the signal to stop', async () => {
      const stop = new AbortController();
      const context = createContext({ cluster, seed: 1, signal: stop.signal, tempo: 100 });
      const running = runMix(context, NEMESES);
      stop.abort();
      await running;
      expect(context.log.events).toEqual([]);
    });
  });
});
