/**
 * A leader whose clock NTP slews. NTP corrects a wall clock by changing the speed of all clocks of a machine, including
 * the monotonic one: `adjtime` by 500 ppm. With such a leader, two grants under 1 per hour were 3,598.6 s apart.
 */
import { describe, expect, it } from 'vitest';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import { Admission } from '../../src/meta/admission.ts';
import { NodeCore } from '../../src/node/node-core.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { MemoryStore } from '../../storage/memory-store.ts';

const HOUR_MILLIS = 3_600_000;
const HOURLY = { ...LOCAL_DEFAULTS, nodes: 1, partitions: 1, limit: 1, windowMillis: HOUR_MILLIS };
const TICKS_TO_DECIDE = 20;

/** A cluster of one node on virtual time, with the real times of its grants. */
async function grantsOf(slewPpm: number, askedMillis: readonly number[]): Promise<number[]> {
  const queue: (() => void)[] = [];
  let realMillis = 0;
  const defer = (run: () => void): void => {
    queue.push(run);
  };
  const config = localConfig(HOURLY);
  const { founders } = config;
  const incarnation = founders[0]?.incarnation ?? '';
  const core = await NodeCore.load({
    config,
    nodeId: 1,
    admission: new Admission({ nodeId: 1, incarnation, facts: '', founders }),
    store: new MemoryStore({ schedule: defer }),
    hash: await loadHash32(),
    clocks: {
      monotonicMillis: () => realMillis * (1 + slewPpm / 1e6),
      wallMillis: () => 1_700_000_000_000,
    },
    listenerMillis: () => realMillis * (1 + slewPpm / 1e6),
    random: () => 0,
    defer,
    gather: defer,
    send: () => false,
    isConnected: () => false,
    leaderChanged: () => undefined,
    fatal(error) {
      throw error;
    },
  });
  const tick = (): void => {
    core.tick();
    for (let run = queue.shift(); run !== undefined; run = queue.shift()) run();
  };
  for (let i = 0; core.raft.leaderships < 2; i += 1) {
    expect(i).toBeLessThan(1_000);
    tick();
  }
  const granted: number[] = [];
  for (const asked of askedMillis) {
    realMillis = asked;
    let answer: AllowAnswer | undefined;
    core.ask({ userId: 'ada' }, (given) => (answer = given));
    for (let i = 0; i < TICKS_TO_DECIDE && answer === undefined; i += 1) tick();
    if (answer?.kind === 'decision' && answer.decision.allowed) granted.push(asked);
  }
  return granted;
}

describe('under 1 per hour', () => {
  it('a leader that is slewed by 500 ppm never grants twice within an hour', async () => {
    const asked = [0];
    for (let at = HOUR_MILLIS - 3_000; at < HOUR_MILLIS + 5_000; at += 100) asked.push(at);
    for (const slewPpm of [500, 400, 0, -500]) {
      const [first = 0, second = 0, ...others] = await grantsOf(slewPpm, asked);
      expect(others).toEqual([]);
      expect(second - first).toBeGreaterThanOrEqual(HOUR_MILLIS);
      // Nor does it grant much later: 600 ppm more, plus the slew.
      expect(second - first).toBeLessThan(HOUR_MILLIS * (1 + 1_150 * 1e-6));
    }
  });
});
