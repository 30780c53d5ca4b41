/** A disk that stops answering: heartbeats need no disk, so without care its node would lead for ever (etcd-io/etcd#15247). */
import { describe, expect, it } from 'vitest';
import { ELECTION_TICKS, type Parcel, World } from './members.ts';

const campaigns = (world: World, id: number): Parcel[] =>
  world.sent.filter(
    ({ from, message }) =>
      from === id &&
      message.kind === 'message' &&
      (message.message.type === 'vote' || message.message.type === 'preVote'),
  );

describe('a leader whose disk does not answer', () => {
  it('steps down after two election timeouts, campaigns no more, and follows when the disk is back', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    world.stalled.add(leader.id);
    leader.propose('the others have it');
    await world.settle();
    await world.tick(2 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(true);
    await world.tick();
    expect(leader.isLeader).toBe(false);
    const others = [1, 2, 3].filter((id) => id !== leader.id);
    world.sent.length = 0;
    await world.commit('goes on', others);
    // Cut off, it would campaign, if it could.
    world.isolate(leader.id);
    await world.tick(5 * ELECTION_TICKS);
    expect(campaigns(world, leader.id)).toEqual([]);
    world.stalled.clear();
    await world.tick(5 * ELECTION_TICKS);
    expect(campaigns(world, leader.id)).not.toEqual([]);
    world.heal();
    await world.commit('b', [1, 2, 3]);
  });

  it('goes on leading if the disk is only slow', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const { term } = leader.status;
    for (let i = 0; i < 5; i += 1) {
      world.stalled.add(leader.id);
      leader.propose(`${i}`);
      await world.tick(2 * ELECTION_TICKS);
      world.stalled.clear();
      await world.tick();
    }
    expect(leader.status).toMatchObject({ role: 'leader', term });
  });

  it('is no candidate either, and its bound is an option', async () => {
    const world = new World({ voters: 3, options: { diskStallTicksMax: 3 } });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    world.stalled.add(leader.id);
    leader.propose('x');
    await world.settle();
    await world.tick(4);
    expect(leader.isLeader).toBe(false);
    await world.commit(
      'b',
      [1, 2, 3].filter((id) => id !== leader.id),
    );
  });

  it('alone in its group leads again when the disk is back', async () => {
    const world = new World({ voters: 1 });
    const leader = await world.elect();
    world.stalled.add(leader.id);
    leader.propose('x');
    await world.tick(3 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    world.stalled.clear();
    await world.commit('b');
  });
});
