/** A disk that stops answering. Heartbeats need no disk, so its node could lead forever (etcd-io/etcd#15247). */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import { ELECTION_TICKS } from './options.ts';
import { isCampaign, type Parcel } from './parcel.ts';

const campaigns = (cluster: Cluster, id: number): Parcel[] =>
  cluster.sent.filter((parcel) => parcel.from === id && isCampaign(parcel));

describe('a leader whose disk does not answer', () => {
  it('steps down after two election timeouts, campaigns no more, and follows when the disk is back', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    cluster.stalled.add(leader.id);
    leader.propose('the others have it');
    await cluster.settle();
    await cluster.tick(2 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(true);
    await cluster.tick();
    expect(leader.isLeader).toBe(false);
    const others = [1, 2, 3].filter((id) => id !== leader.id);
    cluster.sent.length = 0;
    await cluster.commit('goes on', others);
    // It is cut off and would campaign if its disk answered.
    cluster.isolate(leader.id);
    await cluster.tick(5 * ELECTION_TICKS);
    expect(campaigns(cluster, leader.id)).toEqual([]);
    cluster.stalled.clear();
    await cluster.tick(5 * ELECTION_TICKS);
    expect(campaigns(cluster, leader.id)).not.toEqual([]);
    cluster.heal();
    await cluster.commit('b', [1, 2, 3]);
  });

  it('goes on leading if the disk is only slow', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const { term } = leader.status;
    for (let i = 0; i < 5; i += 1) {
      cluster.stalled.add(leader.id);
      leader.propose(`${i}`);
      await cluster.tick(2 * ELECTION_TICKS);
      cluster.stalled.clear();
      await cluster.tick();
    }
    expect(leader.status).toMatchObject({ role: 'leader', term });
  });

  it('is no candidate either, and the bound is an option', async () => {
    const cluster = new Cluster({ voters: 3, options: { diskStallTicksMax: 3 } });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    cluster.stalled.add(leader.id);
    leader.propose('x');
    await cluster.settle();
    await cluster.tick(4);
    expect(leader.isLeader).toBe(false);
    await cluster.commit(
      'b',
      [1, 2, 3].filter((id) => id !== leader.id),
    );
  });

  it('alone in its group leads again when the disk is back', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    cluster.stalled.add(leader.id);
    leader.propose('x');
    await cluster.tick(3 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    cluster.stalled.clear();
    await cluster.commit('b');
  });
});
