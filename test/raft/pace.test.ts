/**
 * How much a leader sends to each follower, and how soon: heartbeats, probes, windows, bounds. The numbers are those of
 * the scenarios in test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { Progress } from '../../raft/progress.ts';
import type { Append } from '../../raft/types.ts';
import { isAppend } from './messages.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

describe('the pace of replication', () => {
  it('25: a leader sends heartbeats every interval', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.sent.length = 0;
    network.tick(1, 5 * heartbeatTicks);
    const beats = network.sent.filter(({ type }) => type === 'heartbeat');
    expect(beats.map(({ to }) => to)).toEqual([2, 3, 2, 3, 2, 3, 2, 3, 2, 3]);
  });

  it('37, 39: the next heartbeat finds out that appends were lost, also while nothing else happens', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.cut(1, 2);
    for (let i = 0; i < 5; i += 1) network.commit(1, `p${i}`);
    network.act(1, (core) => core.peerUnreachable(2));
    network.heal();
    network.tickAll(3 * heartbeatTicks);
    expect(network.node(2).machine).toEqual(network.node(1).machine);
  });

  it('39: a peer that was out of reach for a moment counts as caught up again, even if nothing is proposed', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.act(1, (core) => core.peerUnreachable(2));
    expect(network.core(1).isReadyToLead(2, 0)).toBe(false);
    network.tickAll(2 * heartbeatTicks);
    expect(network.core(1).isReadyToLead(2, 0)).toBe(true);
  });

  it('40: a follower learns of a commit by the next heartbeat at the latest', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) expect(node.core.applied).toBe(2);
  });

  it('41: a leader sends one append to a peer that is gone, not one per proposal', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.crash(3);
    network.act(1, (core) => core.peerUnreachable(3));
    network.sent.length = 0;
    for (let i = 0; i < 100; i += 1) network.commit(1, `p${i}`);
    expect(network.sent.filter((m) => isAppend(m) && m.to === 3)).toHaveLength(1);
  });

  it('78, 79: a full window stops appends, and heartbeats restart them after a loss', () => {
    const network = new Network({ nodes: 3, raft: { inflight: { messagesMax: 3, bytesMax: 1 << 20 } } });
    network.elect(1);
    network.cutOneWay(1, 2);
    network.sent.length = 0;
    for (let i = 0; i < 10; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.sent.length = 0;
    network.propose(1, 'blocked');
    expect(network.sent.filter((m) => isAppend(m) && m.to === 2)).toEqual([]);
    network.tickAll(10 * heartbeatTicks);
    expect(network.node(2).machine).toEqual(network.node(1).machine);
  });

  it("38, 80: one append goes at a time until the peer's log is known; then appends follow each other", () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.act(1, (core) => core.peerUnreachable(2));
    network.cutOneWay(2, 1);
    network.sent.length = 0;
    const sentTo = (to: number): Append[] => network.sent.filter(isAppend).filter((m) => m.to === to);
    for (let i = 0; i < 4; i += 1) network.propose(1, `p${i}`);
    // Nothing has been answered yet.
    expect(sentTo(2)).toMatchObject([{ prevIndex: 1, entries: [{ index: 2 }] }]);
    expect(sentTo(3).map(({ prevIndex }) => prevIndex)).toEqual([1, 2, 3, 4]);
    // Silence changes nothing; the answer to a heartbeat lets one more append go, with all entries.
    network.settle();
    network.tick(1, heartbeatTicks - 1);
    expect(sentTo(2)).toHaveLength(1);
    network.heal();
    network.tickAll(heartbeatTicks);
    expect(sentTo(2)[1]).toMatchObject({ prevIndex: 1 });
    expect(sentTo(2)[1]?.entries).toHaveLength(4);
    network.sent.length = 0;
    for (let i = 0; i < 4; i += 1) network.propose(1, `q${i}`);
    expect(sentTo(2).map(({ prevIndex }) => prevIndex)).toEqual([5, 6, 7, 8]);
  });

  it('81: the window is bounded by bytes as well, and an answer frees all that came before it', () => {
    const progress = new Progress({ next: 1, since: 1, limits: { messagesMax: 100, bytesMax: 100 } });
    progress.becomeReplicate();
    progress.sent(1, 60);
    expect(progress.isPaused()).toBe(false);
    progress.sent(1, 60);
    expect(progress.isPaused()).toBe(true);
    progress.freeInflight(1);
    expect(progress.isPaused()).toBe(false);
    progress.sent(2, 90);
    progress.freeInflight(4);
    expect(progress.inflightCount).toBe(0);
  });

  it('82: a leader that cannot commit refuses proposals beyond its bound, but accepts one of any size when idle', () => {
    const bytes = 100;
    const network = new Network({ nodes: 3, raft: { uncommittedBytesMax: 5 * (bytes + 32) } });
    network.elect(1);
    network.isolate(1);
    let accepted = 0;
    for (let i = 0; i < 50; i += 1) if (network.propose(1, 'x'.repeat(bytes)) !== undefined) accepted += 1;
    expect(accepted).toBe(5);
    network.heal();
    network.tickAll(heartbeatTicks);
    expect(network.core(1).status().commit).toBe(6);
    // Larger than the bound, but nothing else waits.
    expect(network.propose(1, 'x'.repeat(10_000))).toBeDefined();
  });

  it('82: the bound counts proposals of the current term only', () => {
    const network = new Network({ nodes: 3, raft: { uncommittedBytesMax: 300 } });
    for (let round = 0; round < 5; round += 1) {
      const leader = 1 + (round % 3);
      network.elect(leader);
      network.isolate(leader);
      let accepted = 0;
      while (accepted < 10 && network.propose(leader, 'x'.repeat(50)) !== undefined) accepted += 1;
      expect(accepted).toBeGreaterThan(0);
      expect(accepted).toBeLessThan(5);
      network.elect(1 + ((round + 1) % 3));
      network.heal();
      network.tickAll(2 * heartbeatTicks);
    }
    network.tickAll(4 * electionTicks);
    const { leader } = network;
    expect(network.propose(leader?.id ?? 0, 'x'.repeat(50))).toBeDefined();
  });

  it('43: an append message carries at most its bound of bytes, and at least one entry', () => {
    const network = new Network({ nodes: 3, raft: { appendBytesMax: 200 } });
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, 'x'.repeat(i === 10 ? 500 : 30));
    network.heal();
    network.sent.length = 0;
    network.tickAll(6 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
    for (const message of network.sent.filter(isAppend)) {
      const bytes = message.entries.reduce((sum, { data }) => sum + data.length + 32, 0);
      expect(message.entries.length === 1 || bytes <= 200).toBe(true);
    }
  });
});
