/**
 * The handling of snapshots in the core: a replica's own ones and received ones. The numbers are those of the
 * scenarios in test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { positionAt, termsOf } from './log-view.ts';
import { withChunks } from './machine.ts';
import { appendOf, installOf } from './messages.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

function compacting(nodes = 3): Network {
  return new Network({ nodes, snapshotEvery: 5, keepEntries: 2 });
}

describe('a snapshot', () => {
  it('67: a snapshot that ends before the commit index is ignored, and answered', () => {
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

  it('67: a snapshot of entries that the log already holds moves commit and keeps the log', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1, 1, 1])]]) });
    const { core } = network.node(1);
    core.step(installOf({ term: 1, last: [3, 1] }));
    expect(core.status()).toMatchObject({ commit: 3, lastIndex: 4 });
    expect(core.ready()?.install).toBeUndefined();
  });

  it('74: a snapshot replaces a log that conflicts with it', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 2, 2, 2, 2, 2])]]) });
    network.act(1, (core) => core.step(installOf({ term: 3, last: [4, 3] })));
    expect(network.core(1).status()).toMatchObject({ commit: 4, applied: 4, lastIndex: 4 });
    expect(network.node(1).stored).toMatchObject({ base: { index: 4, term: 3 }, entries: [] });
    expect(network.sent).toMatchObject([{ type: 'appendResponse', rejected: false, index: 4 }]);
  });

  it('a replica acknowledges a snapshot, applies entries after it and campaigns with it only when it is on disk', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(installOf({ term: 3, last: [40, 3] })));
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

  it('no entry after a snapshot is applied before the snapshot is on disk', () => {
    const { core } = new Network({ nodes: 3, autoSync: false }).node(1);
    core.step(installOf({ term: 3, last: [40, 3] }));
    core.step(appendOf({ term: 3, prev: [40, 3], terms: [3], commit: 41 }));
    const ready = core.ready();
    expect(ready).toMatchObject({ mustWrite: true, entries: [{ index: 41 }] });
    expect(core.applicable(1_000)).toEqual([]);
    if (ready !== undefined) core.advance(ready);
    expect(core.applicable(1_000)).toMatchObject([{ index: 41 }]);
  });

  it('a crash before an installed snapshot is on disk leaves the old log', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]), autoSync: false });
    network.act(1, (core) => core.step(installOf({ term: 3, last: [40, 3] })));
    network.crash(1, 'lost');
    network.restart(1);
    expect(termsOf(network.core(1))).toEqual([1, 1]);
    expect(network.sent).toEqual([]);
  });

  it('after a snapshot, a late append of entries before its index changes nothing', () => {
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

  it('a write that ends after a snapshot came marks no entry stable: the snapshot replaces the written entries', () => {
    // 1. entries 2 to 5 of term 2 are being written, slowly
    const network = new Network({ nodes: 5, stored: new Map([[1, storedLog([1])]]), autoSync: false });
    network.act(1, (core) => core.step(appendOf({ term: 2, prev: [1, 1], terms: [2, 2, 2, 2] })));
    // 2. the leader of term 3 replaces them from 3 on
    network.act(1, (core) => core.step(appendOf({ from: 3, term: 3, prev: [2, 2], terms: [3] })));
    // 3. the leader of term 4 has all entries of term 2; it sends a snapshot up to 4, and entry 5 after it
    network.act(1, (core) => core.step(installOf({ from: 4, term: 4, last: [4, 2] })));
    network.act(1, (core) => core.step(appendOf({ from: 4, term: 4, prev: [4, 2], terms: [2] })));
    // 4. the first write completes: entry 5 is on disk, but the snapshot that is written next replaces it
    network.node(1).sync();
    expect(network.node(1).isWriting).toBe(true);
    network.node(1).sync();
    // 5. everything that was acknowledged in term 4 must be on disk
    const acknowledged = network.sent.filter((m) => m.type === 'appendResponse' && m.term === 4);
    const { base, entries } = network.node(1).stored ?? { base: { index: 0 }, entries: [] };
    for (const message of acknowledged) {
      expect('index' in message && message.index).toBeLessThanOrEqual(base.index + entries.length);
    }
    expect(entries.map(({ index }) => index)).toEqual([5]);
  });
});
