/**
 * When a leader sends a snapshot instead of entries, and how it handles the answers. The numbers are those of the
 * scenarios in test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { CoreState } from '../../raft/core-state.ts';
import { handleHeartbeatResponse, peerUnreachable, propose, takeLeadership } from '../../raft/leader.ts';
import { RaftLog } from '../../raft/log.ts';
import type { LogPosition } from '../../raft/types.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

function compacting(): Network {
  return new Network({ nodes: 3, snapshotEvery: 5, keepEntries: 2 });
}

/** Node 1 leads, and the snapshot that node 3 needs is held. */
function snapshotUnderWay(): Network {
  const network = compacting();
  network.elect(1);
  network.isolate(3);
  for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
  network.heal();
  network.hold((message) => message.type === 'snapshot');
  network.tickAll(2 * heartbeatTicks);
  return network;
}

describe('a leader whose log no longer has the entries that a follower needs', () => {
  it('68: a follower that needs compacted entries gets a snapshot, and appends after it', () => {
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 30; i += 1) network.commit(1, `p${i}`);
    expect(network.core(1).logBase.index).toBeGreaterThan(20);
    network.heal();
    network.tickAll(4 * heartbeatTicks);
    expect(network.sent.filter(({ type, to }) => type === 'snapshot' && to === 3)).toHaveLength(1);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
    network.commit(1, 'and on');
    network.tickAll(heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
    // The installed snapshot is on its disk.
    network.crash(3);
    network.restart(3);
    network.tickAll(2 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('69: nothing is appended to a follower while a snapshot is on its way to it', () => {
    const network = snapshotUnderWay();
    expect(network.held).toHaveLength(1);
    network.sent.length = 0;
    for (let i = 0; i < 3; i += 1) network.commit(1, `q${i}`);
    network.tickAll(2 * electionTicks);
    expect(network.sent.filter(({ type, to }) => type === 'append' && to === 3)).toEqual([]);
    network.release();
    network.tickAll(2 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('69: a snapshot that did not arrive is sent again after the next heartbeat', () => {
    const network = snapshotUnderWay();
    for (const envelope of network.held.splice(0)) network.lose(envelope);
    network.release();
    network.tickAll(3 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('71: a follower with a full window, whose entries are compacted meanwhile, recovers', () => {
    const network = new Network({
      nodes: 3,
      snapshotEvery: 5,
      keepEntries: 2,
      raft: { inflight: { messagesMax: 2, bytesMax: 1 << 20 } },
    });
    network.elect(1);
    network.hold(({ type, from }) => type === 'appendResponse' && from === 3);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    expect(network.core(1).logBase.index).toBeGreaterThan(network.core(3).lastPosition.index);
    network.release();
    network.settle();
    network.tickAll(4 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('77: the fate of a snapshot sent in an earlier term means nothing to the leader of a later one', () => {
    const network = snapshotUnderWay();
    const [late] = network.held.splice(0);
    expect(late).toBeDefined();
    network.release();
    network.elect(2);
    network.act(1, (core) => core.snapshotDone(3, 'arrived'));
    expect(network.core(1).role).toBe('follower');
    network.elect(1);
    network.tickAll(2 * heartbeatTicks);
    const { match } = network.core(1).status();
    network.sent.length = 0;
    for (const fate of ['broken', 'arrived'] as const) network.act(1, (core) => core.snapshotDone(3, fate));
    expect(network.core(1).status().match).toEqual(match);
    network.commit(1, 'at once');
    expect(network.node(3).core.lastPosition.index).toBe(network.core(1).lastPosition.index);
  });

  it('70: an acknowledgement at or behind the start of the log ends the wait, from any snapshot', () => {
    const network = snapshotUnderWay();
    const [first] = network.held;
    for (let i = 0; i < 3; i += 1) network.commit(1, `q${i}`);
    // The first snapshot arrives, but its sender never hears of it.
    expect(first?.message.type).toBe('snapshot');
    if (first !== undefined) network.act(3, (core) => core.step(first.message));
    network.held.length = 0;
    network.release();
    network.settle();
    network.tickAll(6 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('68: no snapshot is sent to a peer that was not heard from', () => {
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    network.tickAll(2 * electionTicks);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    network.act(1, (core) => core.peerUnreachable(3));
    network.tickAll(2 * electionTicks);
    expect(network.sent.filter(({ type }) => type === 'snapshot')).toEqual([]);
  });

  it('a silent peer whose entries were compacted, and whose connection then breaks, does not stop the leader', () => {
    // The leader must not spin: no append can be made for this peer, and no snapshot may be sent to it.
    class CountingLog extends RaftLog {
      lookups = 0;
      override positionAt(index: number): LogPosition | undefined {
        this.lookups += 1;
        if (this.lookups > 1_000) throw new Error('the leader spins');
        return super.positionAt(index);
      }
    }
    const { entries } = storedLog([1, 1, 1, 1, 1, 1, 1, 1]);
    const log = new CountingLog({ index: 0, term: 0, timeMillis: 0 }, entries, 8, 8);
    const state = new CoreState({
      id: 1,
      voters: [1, 2, 3],
      hardState: { term: 1, vote: 1, commit: 0 },
      removedAt: 0,
      log,
      clock: { nowMillis: () => 1_000, anchor: () => {} },
      random: () => 0,
      options: { ...TEST_OPTIONS, inflight: { messagesMax: 1, bytesMax: 1 << 20 } },
      isPreferred: false,
    });
    state.becomeCandidate();
    const leadership = takeLeadership(state);
    const progress = leadership.progress.get(3);
    expect(progress).toBeDefined();
    if (progress === undefined) return;
    progress.maybeUpdate(2);
    progress.becomeReplicate();
    log.compact(6);
    peerUnreachable(leadership, 3);
    propose(state, leadership, new Uint8Array(1));
    expect(state.outgoing.filter(({ type, to }) => type === 'snapshot' && to === 3)).toEqual([]);
    // And as soon as the peer is heard from, it gets its snapshot.
    handleHeartbeatResponse(state, leadership, {
      type: 'heartbeatResponse',
      from: 3,
      to: 1,
      term: state.term,
      readRound: 0,
      isReluctant: false,
    });
    expect(state.outgoing.filter(({ type, to }) => type === 'snapshot' && to === 3)).toHaveLength(1);
  });
});
