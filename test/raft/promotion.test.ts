/** A learner that is far away, or whose disk is slow, is always some entries behind while there is load. */
import { describe, expect, it } from 'vitest';
import { ELECTION_TICKS, type Parcel, World } from './driver/members.ts';

const DISTANCE_TICKS = 4;
const ENTRIES_PER_TICK = 30;

describe('a learner that keeps up, always a little behind', () => {
  it('is promoted', async () => {
    const world = new World({ voters: 3 });
    await world.elect();
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    await world.commit('a', [4]);
    const late: { readonly at: number; readonly parcel: Parcel }[] = [];
    let ticks = 0;
    let isArriving = false;
    world.passes = (parcel) => {
      if (parcel.to !== 4 || isArriving) return true;
      late.push({ at: ticks + DISTANCE_TICKS, parcel });
      return false;
    };
    const leader = await world.elect();
    let isPromoted = false;
    for (; ticks < 6 * ELECTION_TICKS && !isPromoted; ticks += 1) {
      for (let i = 0; i < ENTRIES_PER_TICK; i += 1) {
        leader.propose(`${ticks}.${i}`);
        await world.settle();
      }
      isArriving = true;
      while ((late[0]?.at ?? Number.POSITIVE_INFINITY) <= ticks) {
        const next = late.shift();
        if (next !== undefined) world.deliver(next.parcel);
      }
      isArriving = false;
      await world.tick();
      expect(leader.isLeader).toBe(true);
      if (ticks < 2 * DISTANCE_TICKS || leader.raft.isChanging(1)) continue;
      world.change(leader, [{ kind: 'promote', node: 4 }]);
      await world.settle();
      isPromoted = leader.status.config.voters.includes(4);
    }
    expect(isPromoted).toBe(true);
  });

  it('is not while it is ever further behind', async () => {
    const world = new World({ voters: 3 });
    await world.elect();
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    await world.commit('a', [4]);
    world.stalled.add(4);
    const leader = await world.elect();
    for (let ticks = 0; ticks < 4 * ELECTION_TICKS; ticks += 1) {
      for (let i = 0; i < ENTRIES_PER_TICK; i += 1) {
        leader.propose(`${ticks}.${i}`);
        await world.settle();
      }
      await world.tick();
      if (ticks < 3) continue;
      const answer = world.change(leader, [{ kind: 'promote', node: 4 }]);
      await world.settle();
      expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
    }
  });
});
