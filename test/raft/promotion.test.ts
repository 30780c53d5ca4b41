/** Promotion of learners. A distant learner, or one with a slow disk, is always a few entries behind under load. */
import { describe, expect, it } from 'vitest';
import { Cluster } from './driver/cluster.ts';
import { ELECTION_TICKS } from './driver/options.ts';
import type { Parcel } from './driver/parcel.ts';

const DISTANCE_TICKS = 4;
const ENTRIES_PER_TICK = 30;

describe('a learner that keeps up, always a little behind', () => {
  it('is promoted', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.elect();
    await cluster.joinAsLearner(4);
    await cluster.commit('a', [4]);
    const late: { readonly at: number; readonly parcel: Parcel }[] = [];
    let ticks = 0;
    let isArriving = false;
    cluster.passes = (parcel) => {
      if (parcel.to !== 4 || isArriving) return true;
      late.push({ at: ticks + DISTANCE_TICKS, parcel });
      return false;
    };
    const leader = await cluster.elect();
    let isPromoted = false;
    for (; ticks < 6 * ELECTION_TICKS && !isPromoted; ticks += 1) {
      for (let i = 0; i < ENTRIES_PER_TICK; i += 1) {
        leader.propose(`${ticks}.${i}`);
        await cluster.settle();
      }
      isArriving = true;
      while ((late[0]?.at ?? Number.POSITIVE_INFINITY) <= ticks) {
        const next = late.shift();
        if (next !== undefined) cluster.deliver(next.parcel);
      }
      isArriving = false;
      await cluster.tick();
      expect(leader.isLeader).toBe(true);
      if (ticks < 2 * DISTANCE_TICKS || leader.raft.isChanging(1)) continue;
      cluster.change(leader, [{ kind: 'promote', node: 4 }]);
      await cluster.settle();
      isPromoted = leader.status.config.voters.includes(4);
    }
    expect(isPromoted).toBe(true);
  });

  it('is not promoted while it falls further behind', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.elect();
    await cluster.joinAsLearner(4);
    await cluster.commit('a', [4]);
    cluster.stalled.add(4);
    const leader = await cluster.elect();
    for (let ticks = 0; ticks < 4 * ELECTION_TICKS; ticks += 1) {
      for (let i = 0; i < ENTRIES_PER_TICK; i += 1) {
        leader.propose(`${ticks}.${i}`);
        await cluster.settle();
      }
      await cluster.tick();
      if (ticks < 3) continue;
      const answer = cluster.change(leader, [{ kind: 'promote', node: 4 }]);
      await cluster.settle();
      expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
    }
  });
});
