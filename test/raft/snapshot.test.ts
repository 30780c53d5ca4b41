/** Snapshots and compaction, as the core sees them. Numbers are those of the scenario catalogue. */
import { describe, expect, it } from 'vitest';
import { CoreState } from '../../raft/core-state.ts';
import { becomeLeader, handleHeartbeatResponse, peerUnreachable, propose } from '../../raft/leader.ts';
import { RaftLog } from '../../raft/log.ts';
import type { Append, InstallSnapshot, LogPosition } from '../../raft/types.ts';
import { positionAt, termsOf } from './log-view.ts';
import { withChunks } from './machine.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

function compacting(nodes = 3): Network {
  return new Network({ nodes, snapshotEvery: 5, keepEntries: 2 });
}

function installOf(term: number, index: number, snapshotTerm: number, from = 2): InstallSnapshot {
  const chunk = new TextEncoder().encode(JSON.stringify({ index, digest: 7 }));
  const meta = {
    index,
    term: snapshotTerm,
    timeMillis: index * 10,
    voters: [1, 2, 3],
    chunkCount: 1,
    byteLength: chunk.length,
  };
  withChunks({ meta, chunks: [chunk] });
  return { type: 'snapshot', from, to: 1, term, meta, timeMillis: index * 10 };
}

function appendOf(
  from: number,
  term: number,
  prev: readonly [number, number],
  terms: readonly number[],
): Append {
  const [prevIndex, prevTerm] = prev;
  const entries = terms.map((entryTerm, i) => ({
    index: prevIndex + 1 + i,
    term: entryTerm,
    timeMillis: (prevIndex + 1 + i) * 10,
    kind: 'command' as const,
    data: new Uint8Array(1),
  }));
  return { type: 'append', from, to: 1, term, prevIndex, prevTerm, entries, commit: 0, timeMillis: 0 };
}

describe('snapshots', () => {
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
    // What was installed is on its disk.
    network.crash(3);
    network.restart(3);
    network.tickAll(2 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('67: a snapshot that is older than what is committed is ignored, and answered', () => {
    const network = compacting();
    network.elect(1);
    for (let i = 0; i < 12; i += 1) network.commit(1, `p${i}`);
    network.tickAll(heartbeatTicks);
    const { snapshot } = network.node(1);
    network.isolate(3);
    const before = network.core(3).status();
    const { node } = { node: network.node(3) };
    expect(snapshot).toBeDefined();
    if (snapshot === undefined) return;
    network.act(3, (core) =>
      core.step({
        type: 'snapshot',
        from: 1,
        to: 3,
        term: core.term,
        meta: withChunks(snapshot),
        timeMillis: snapshot.meta.timeMillis,
      }),
    );
    expect(network.core(3).status()).toEqual(before);
    expect(node.isWriting).toBe(false);
  });

  it('67: a snapshot that the log already holds moves commit and keeps the log', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1, 1, 1])]]) });
    const { core } = network.node(1);
    core.step(installOf(1, 3, 1));
    expect(core.status()).toMatchObject({ commit: 3, lastIndex: 4 });
    expect(core.ready()?.install).toBeUndefined();
  });

  it('74: a snapshot replaces a log that conflicts with it', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 2, 2, 2, 2, 2])]]) });
    network.act(1, (core) => core.step(installOf(3, 4, 3)));
    expect(network.core(1).status()).toMatchObject({ commit: 4, applied: 4, lastIndex: 4 });
    expect(network.node(1).stored).toMatchObject({ base: { index: 4, term: 3 }, entries: [] });
    expect(network.sent).toMatchObject([{ type: 'appendResponse', rejected: false, index: 4 }]);
  });

  it('a snapshot is acknowledged, applied upon and campaigned with only when it is on disk', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(installOf(3, 40, 3)));
    expect(network.sent).toEqual([]);
    network.tick(1, 4 * electionTicks);
    expect(network.core(1).role).toBe('follower');
    network.node(1).sync();
    expect(network.sent).toMatchObject([{ type: 'appendResponse', index: 40 }]);
    expect(network.node(1).machine.index).toBe(40);
    network.crash(1);
    network.restart(1);
    expect(network.core(1).lastPosition).toMatchObject({ index: 40, term: 3 });
  });

  it('nothing is applied upon a snapshot that is not on disk', () => {
    const { core } = new Network({ nodes: 3, autoSync: false }).node(1);
    core.step(installOf(3, 40, 3));
    core.step({ ...appendOf(2, 3, [40, 3], [3]), commit: 41 });
    const ready = core.ready();
    expect(ready).toMatchObject({ mustWrite: true, entries: [{ index: 41 }] });
    expect(core.applicable(1_000)).toEqual([]);
    if (ready !== undefined) core.advance(ready);
    expect(core.applicable(1_000)).toMatchObject([{ index: 41 }]);
  });

  it('a crash before an installed snapshot is on disk leaves the old log', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]), autoSync: false });
    network.act(1, (core) => core.step(installOf(3, 40, 3)));
    network.crash(1, 'lost');
    network.restart(1);
    expect(termsOf(network.core(1))).toEqual([1, 1]);
    expect(network.sent).toEqual([]);
  });

  it('after a snapshot, a late append from below its index changes nothing', () => {
    const network = compacting();
    network.elect(1);
    network.hold((message) => message.type === 'append' && message.to === 3);
    for (let i = 0; i < 4; i += 1) network.commit(1, `p${i}`);
    const late = [...network.held];
    network.held.length = 0;
    network.release();
    network.isolate(3);
    for (let i = 0; i < 30; i += 1) network.commit(1, `q${i}`);
    network.heal();
    network.tickAll(4 * heartbeatTicks);
    const before = network.core(3).status();
    const { machine } = network.node(3);
    expect(late.length).toBeGreaterThan(0);
    for (const envelope of late) network.deliver(envelope);
    expect(network.core(3).status()).toEqual(before);
    expect(network.node(3).machine).toBe(machine);
    network.commit(1, 'and on');
    network.tickAll(heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('69: nothing is appended to a follower while a snapshot is on its way to it', () => {
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.hold((message) => message.type === 'snapshot');
    network.tickAll(2 * heartbeatTicks);
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
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.hold((message) => message.type === 'snapshot');
    network.tickAll(2 * heartbeatTicks);
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
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.hold(({ type }) => type === 'snapshot');
    network.tickAll(2 * heartbeatTicks);
    const [late] = network.held.splice(0);
    expect(late).toBeDefined();
    network.release();
    network.elect(2);
    network.act(1, (core) => core.snapshotDone(3, true));
    expect(network.core(1).role).toBe('follower');
    network.elect(1);
    network.tickAll(2 * heartbeatTicks);
    const { match } = network.core(1).status();
    network.sent.length = 0;
    for (const arrived of [false, true]) network.act(1, (core) => core.snapshotDone(3, arrived));
    expect(network.core(1).status().match).toEqual(match);
    network.commit(1, 'at once');
    expect(network.node(3).core.lastPosition.index).toBe(network.core(1).lastPosition.index);
  });

  it('70: an acknowledgement that connects to the log ends the wait, whichever snapshot it came from', () => {
    const network = compacting();
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.hold((message) => message.type === 'snapshot');
    network.tickAll(2 * heartbeatTicks);
    const [first] = network.held;
    for (let i = 0; i < 3; i += 1) network.commit(1, `q${i}`);
    // The first snapshot arrives, but its sender is never told.
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
      term: 1,
      vote: 1,
      removedAt: 0,
      log,
      clock: { nowMillis: () => 1_000, anchor: () => {} },
      random: () => 0,
      options: { ...TEST_OPTIONS, inflight: { messagesMax: 1, bytesMax: 1 << 20 } },
    });
    state.becomeCandidate();
    becomeLeader(state);
    const progress = state.progress.get(3);
    expect(progress).toBeDefined();
    if (progress === undefined) return;
    progress.maybeUpdate(2);
    progress.becomeReplicate();
    log.compact(6);
    progress.recentActive = false;
    peerUnreachable(state, 3);
    propose(state, new Uint8Array(1));
    expect(state.outgoing.filter(({ type, to }) => type === 'snapshot' && to === 3)).toEqual([]);
    // And as soon as the peer is heard from, it gets its snapshot.
    handleHeartbeatResponse(state, { type: 'heartbeatResponse', from: 3, to: 1, term: state.term });
    expect(state.outgoing.filter(({ type, to }) => type === 'snapshot' && to === 3)).toHaveLength(1);
  });

  it('72: after compaction the log still knows the position just before its first entry', () => {
    const network = compacting(1);
    network.elect(1);
    for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
    const { logBase } = network.core(1);
    expect(logBase.index).toBeGreaterThan(0);
    expect(positionAt(network.core(1), logBase.index)).toEqual(logBase);
    expect(logBase.term).toBe(1);
  });

  it('105: a restart from a snapshot continues behind it', () => {
    const network = compacting();
    network.elect(1);
    for (let i = 0; i < 23; i += 1) network.commit(1, `p${i}`);
    network.tickAll(heartbeatTicks);
    const { machine } = network.node(2);
    const index = network.node(2).snapshot?.meta.index ?? 0;
    network.crash(2);
    network.restart(2);
    expect(network.core(2).applied).toBeGreaterThanOrEqual(index);
    network.tickAll(2 * heartbeatTicks);
    expect(network.node(2).machine).toEqual(machine);
  });

  it('a write that is overtaken by a snapshot marks nothing stable: the snapshot replaces what it wrote', () => {
    // 1. entries 2 to 5 of term 2 are being written, slowly
    const network = new Network({ nodes: 5, stored: new Map([[1, storedLog([1])]]), autoSync: false });
    network.act(1, (core) => core.step(appendOf(2, 2, [1, 1], [2, 2, 2, 2])));
    // 2. the leader of term 3 replaces them from 3 on
    network.act(1, (core) => core.step(appendOf(3, 3, [2, 2], [3])));
    // 3. the leader of term 4 has all entries of term 2; it sends a snapshot up to 4, and entry 5 after it
    network.act(1, (core) => core.step(installOf(4, 4, 2, 4)));
    network.act(1, (core) => core.step(appendOf(4, 4, [4, 2], [2])));
    // 4. the first write completes: entry 5 is on disk, but the snapshot that is written next replaces it
    network.node(1).sync();
    expect(network.node(1).isWriting).toBe(true);
    network.node(1).sync();
    // 5. whatever was acknowledged in term 4 must be on disk
    const acknowledged = network.sent.filter((m) => m.type === 'appendResponse' && m.term === 4);
    const { base, entries } = network.node(1).stored ?? { base: { index: 0 }, entries: [] };
    for (const message of acknowledged) {
      expect('index' in message && message.index).toBeLessThanOrEqual(base.index + entries.length);
    }
    expect(entries.map(({ index }) => index)).toEqual([5]);
  });
});
