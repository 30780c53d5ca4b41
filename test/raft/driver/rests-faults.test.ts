/**
 * Idle groups under faults: a rest makes no leader stay longer, no follower wait longer, and no process end.
 */
import { describe, expect, it } from 'vitest';
import { RolledBackError } from '../../../raft/errors.ts';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { isCampaign, messageOf, type Parcel, typeOf } from './parcel.ts';

/** Ticks until a group rests in which nothing happened. */
const QUIET_TICKS = 4 * ELECTION_TICKS;

/** One group; all of its members rest. */
async function resting(
  voters = 3,
): Promise<{ cluster: Cluster; leader: Node; followers: readonly [Node, Node, ...Node[]] }> {
  const cluster = new Cluster({ voters });
  const leader = await cluster.elect();
  await cluster.tick(QUIET_TICKS);
  await expectRest(cluster);
  const [one, other, ...others] = cluster.up.filter((node) => node !== leader);
  if (one === undefined || other === undefined) throw new Error('two followers');
  return { cluster, leader, followers: [one, other, ...others] };
}

/** Nothing but beats leaves any node, and each of them is answered. */
async function expectRest(cluster: Cluster): Promise<void> {
  cluster.sent.length = 0;
  await cluster.tick(4 * HEARTBEAT_TICKS);
  expect(new Set(cluster.sent.map(typeOf))).toEqual(new Set(['beat', 'beatAnswer']));
}

const isOfGroup = (parcel: Parcel): boolean => messageOf(parcel) !== undefined;

describe('a leader that rested', () => {
  it.each([0, 2 * HEARTBEAT_TICKS + 1])(
    'steps down two election timeouts after a quorum followed it last; one of two was silent for %d ticks before',
    async (silentTicks) => {
      for (let delayTicks = 0; delayTicks < HEARTBEAT_TICKS; delayTicks += 1) {
        const { cluster, leader, followers } = await resting();
        const [one, other] = followers;
        const isSilent = ({ from, to }: Parcel): boolean =>
          silentTicks > 0 && [from, to].includes(leader.id) && [from, to].includes(other.id);
        cluster.passes = (parcel) => !isSilent(parcel);
        await cluster.tick(silentTicks + delayTicks);
        const { term } = leader.status;
        // Beats between the nodes arrive, messages of groups do not; one of the followers takes over.
        cluster.passes = (parcel) =>
          !isSilent(parcel) && (!isOfGroup(parcel) || ![parcel.from, parcel.to].includes(leader.id));
        const message = { type: 'timeoutNow', from: leader.id, to: one.id, term } as const;
        one.raft.receive([{ kind: 'message', group: GROUP, message }]);
        await cluster.settle();
        expect(one.isLeader).toBe(true);
        await cluster.tick(2 * ELECTION_TICKS);
        expect(leader.isLeader).toBe(false);
      }
    },
  );

  it('follows a leader that sends it a snapshot in a newer term', async () => {
    const { cluster, leader, followers } = await resting();
    const [one] = followers;
    const { term, lastIndex: index } = leader.status;
    const timeMillis = cluster.now;
    const meta = { index, term, timeMillis, voters: [1, 2, 3], chunkCount: 1, byteLength: 1, checksum: 1 };
    leader.raft.receive([
      {
        kind: 'chunk',
        group: GROUP,
        from: one.id,
        term: term + 1,
        timeMillis,
        meta,
        chunk: 0,
        data: new Uint8Array(1),
      },
    ]);
    leader.turn();
    expect(leader.status).toMatchObject({ role: 'follower', term: term + 1, leader: one.id });
  });
});

describe('groups whose beats never arrive', () => {
  it('keep their leader without any election', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const { term } = leader.status;
    cluster.passes = ({ message }) => message.kind !== 'beat';
    cluster.sent.length = 0;
    await cluster.tick(50 * ELECTION_TICKS);
    expect(cluster.sent.some(({ message }) => message.kind === 'beat')).toBe(true);
    expect(cluster.sent.some(isCampaign)).toBe(false);
    expect(leader.status).toMatchObject({ role: 'leader', term });
  });
});

describe('followers that rested', () => {
  it('wait no longer if the message that their leader has left arrives late', async () => {
    const { cluster, leader, followers } = await resting();
    const [one, other] = followers;
    // The last beat that speaks for the group is at most an interval old.
    leader.remove(1);
    cluster.passes = ({ from }) => from !== leader.id;
    await cluster.tick(ELECTION_TICKS - 2 * HEARTBEAT_TICKS);
    let beats = 0;
    cluster.passes = ({ from, to, message }) => {
      if (from !== leader.id) return true;
      if (message.kind !== 'beat' || to !== one.id || beats > 0) return false;
      beats += 1;
      return true;
    };
    await cluster.until(() => beats > 0, HEARTBEAT_TICKS);
    await cluster.tick(2 * HEARTBEAT_TICKS);
    cluster.sent.length = 0;
    const { term, lastIndex } = one.status;
    const message = {
      type: 'preVote',
      from: other.id,
      to: one.id,
      term: term + 1,
      lastIndex,
      lastTerm: term,
      isTransfer: false,
    } as const;
    one.raft.receive([{ kind: 'message', group: GROUP, message }]);
    await cluster.settle();
    const answers = cluster.sent.map(messageOf).filter((each) => each?.type === 'preVoteResponse');
    expect(answers).toMatchObject([{ from: one.id, granted: true }]);
  });

  it('resume at once after an unnoticed restart of their process', async () => {
    const { cluster, leader, followers } = await resting();
    const [one] = followers;
    const { term } = leader.status;
    one.crash();
    one.start();
    await cluster.until(() => one.status.leader === leader.id, 4 * HEARTBEAT_TICKS);
    await cluster.tick(QUIET_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    await expectRest(cluster);
  });

  it('are detected if their disk was lost unnoticed', async () => {
    const { cluster, followers } = await resting();
    const [one] = followers;
    one.crash();
    const anew = cluster.add(one.id, [1, 2, 3]);
    anew.mayEnd = true;
    await cluster.until(() => anew.fatals.length > 0, 4 * HEARTBEAT_TICKS);
    expect(anew.fatals[0]).toBeInstanceOf(RolledBackError);
  });

  it('say that they woke, also if another list of resting groups comes before they could', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.tick(QUIET_TICKS);
    const one = cluster.otherThan(leader);
    const beats = cluster.sent.flatMap(({ to, message }) =>
      to === one.id && message.kind === 'beat' ? [message] : [],
    );
    const list = beats.find(({ groups }) => groups !== undefined);
    const last = beats.at(-1);
    if (list === undefined || last === undefined) throw new Error('a list');
    cluster.sent.length = 0;
    // Its leader must hear when the follower would not lead, or would again.
    one.raft.avoidLeading('draining', true);
    one.turn();
    one.raft.receive([{ ...list, version: list.version + 1, readingMillis: last.readingMillis }]);
    await cluster.settle();
    const answers = cluster.sent.flatMap(({ message }) => (message.kind === 'beatAnswer' ? [message] : []));
    expect(answers).toMatchObject([{ from: one.id, version: list.version + 1, awake: [GROUP] }]);
  });
});
