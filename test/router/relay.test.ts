/** Tests relayed requests and pings. */
import { describe, expect, it } from 'vitest';
import { NO_NODE } from '../../raft/types.ts';
import type { Answer } from '../../src/api/user-request.ts';
import type { Partition } from '../../src/partition/partition.ts';
import { Forwarder } from '../../src/router/forwarder.ts';
import { decodeAnswers } from '../../src/wire/answers.ts';
import { decodeRequests } from '../../src/wire/requests.ts';
import { FakePartition, GRANT, notLeader, SILENT_TICKS_MAX, TICK_MILLIS } from './fixtures.ts';

const PARTITION = 4;

/** Forwarders of some nodes, each with a replica of one partition, and the paths between them. */
class Nodes {
  nowMillis = 1_000;
  ageMillis = 0;
  readonly forwarders = new Map<number, Forwarder>();
  readonly partitions = new Map<number, FakePartition>();
  readonly suspected: { readonly by: number; readonly node: number }[] = [];
  /** Links on which nothing arrives, as `from>to`. */
  readonly cut = new Set<string>();
  readonly hops: string[] = [];
  #queue: (() => void)[] = [];

  constructor(count: number) {
    for (let id = 1; id <= count; id += 1) {
      const partition = new FakePartition(PARTITION);
      this.partitions.set(id, partition);
      const partitions = new Map<number, unknown>([[PARTITION, partition]]);
      const forwarder = new Forwarder({
        nodeId: id,
        partitions: partitions as ReadonlyMap<number, unknown> as ReadonlyMap<number, Partition>,
        monotonicMillis: () => this.nowMillis,
        listenerMillis: () => this.nowMillis - this.ageMillis,
        send: (to, kind, payload) => {
          if (this.cut.has(`${id}>${to}`)) return true;
          this.#queue.push(() => {
            if (kind === 'requests' && payload.length > 1) this.hops.push(`${id}>${to}`);
            if (kind === 'requests') this.forwarders.get(to)?.receiveRequests(id, decodeRequests(payload));
            else this.forwarders.get(to)?.receiveAnswers(id, decodeAnswers(payload));
          });
          return true;
        },
        gather: (flush) => this.#queue.push(flush),
        isConnected: (node) => node !== id,
        suspected: (node) => this.suspected.push({ by: id, node }),
        silentTicksMax: SILENT_TICKS_MAX,
        firstId: id * 1_000_000,
      });
      this.forwarders.set(id, forwarder);
    }
  }

  partition(id: number): FakePartition {
    const partition = this.partitions.get(id);
    if (partition === undefined) throw new Error(`there is no node ${id}`);
    return partition;
  }

  /** All nodes believe that `leader` leads; it decides. */
  ledBy(leader: number): void {
    for (const [id, partition] of this.partitions) {
      partition.reply = () => (id === leader ? GRANT : notLeader(leader, 3));
    }
  }

  /** Node 1 asks. */
  ask({ to, relayTo = NO_NODE }: { to: number; relayTo?: number }): Answer[] {
    const answers: Answer[] = [];
    this.forwarders.get(1)?.forward({
      to,
      partition: PARTITION,
      request: { userId: 'ada', requestId: 'r-1' },
      deadlineMillis: this.nowMillis + 1_000,
      relayTo,
      done: (answer) => answers.push(answer),
    });
    this.settle();
    return answers;
  }

  settle(): void {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) next();
  }

  tick(count: number): void {
    for (let i = 0; i < count; i += 1) {
      this.nowMillis += TICK_MILLIS;
      for (const forwarder of this.forwarders.values()) forwarder.tick();
      this.settle();
    }
  }
}

describe('a request for a leader that the asking node cannot reach', () => {
  it('is sent through one relay, as the same request, and its answer comes back the same way', () => {
    const nodes = new Nodes(3);
    nodes.ledBy(3);
    nodes.nowMillis += 0.75;
    expect(nodes.ask({ to: 2, relayTo: 3 })).toEqual([GRANT]);
    expect(nodes.hops).toEqual(['1>2', '2>3']);
    // Two nodes have rounded the remaining time down.
    expect(nodes.partition(3).asked).toMatchObject([
      { request: { userId: 'ada', requestId: 'r-1' }, deadlineMillis: Math.floor(nodes.nowMillis) + 999 },
    ]);
    expect([...nodes.forwarders.values()].map(({ outstandingCount }) => outstandingCount)).toEqual([0, 0, 0]);
  });

  it('is not relayed by a node that knows another leader: the asking node can reach that one', () => {
    const nodes = new Nodes(4);
    nodes.ledBy(4);
    expect(nodes.ask({ to: 2, relayTo: 3 })).toEqual([notLeader(4, 3)]);
    expect(nodes.hops).toEqual(['1>2']);
  });

  it('is not relayed if the asking node did not ask for that', () => {
    const nodes = new Nodes(3);
    nodes.ledBy(3);
    expect(nodes.ask({ to: 2 })).toEqual([notLeader(3, 3)]);
    expect(nodes.hops).toEqual(['1>2']);
  });

  it('is never relayed twice, whichever leaders the nodes know', () => {
    const nodes = new Nodes(4);
    // Each believes in the next one, and 4 in 2 again.
    for (const [id, partition] of nodes.partitions) partition.reply = () => notLeader(id === 4 ? 2 : id + 1);
    for (const relayTo of [1, 2, 3, 4]) {
      nodes.hops.length = 0;
      expect(nodes.ask({ to: 2, relayTo })).toMatchObject([{ kind: 'notLeader' }]);
      expect(nodes.hops).toEqual(relayTo === 3 ? ['1>2', '2>3'] : ['1>2']);
    }
  });

  it('is not sent back to the node that asks', () => {
    const nodes = new Nodes(2);
    nodes.ledBy(1);
    expect(nodes.ask({ to: 2, relayTo: 1 })).toEqual([notLeader(1, 3)]);
  });

  it('has an unknown outcome when the relay loses the leader', () => {
    const nodes = new Nodes(3);
    nodes.ledBy(3);
    nodes.partition(3).reply = () => undefined;
    const answers = nodes.ask({ to: 2, relayTo: 3 });
    nodes.forwarders.get(2)?.peerDisconnected(3);
    nodes.settle();
    expect(answers).toEqual([{ kind: 'unavailable', reason: 'unknown_outcome', proposed: true }]);
  });
});

describe('a node that has not answered a request', () => {
  it('and sends nothing at all is suspected, once, until it sends something', () => {
    const nodes = new Nodes(2);
    nodes.cut.add('1>2');
    nodes.ask({ to: 2 });
    nodes.tick(SILENT_TICKS_MAX - 1);
    expect(nodes.suspected).toEqual([]);
    nodes.tick(SILENT_TICKS_MAX);
    expect(nodes.suspected).toEqual([{ by: 1, node: 2 }]);
    expect(nodes.forwarders.get(1)?.isReachable(2)).toBe(false);
    nodes.cut.clear();
    nodes.tick(SILENT_TICKS_MAX);
    expect(nodes.forwarders.get(1)?.isReachable(2)).toBe(true);
  });

  it('is suspected as well if its answers do not arrive', () => {
    const nodes = new Nodes(2);
    nodes.cut.add('2>1');
    nodes.ask({ to: 2 });
    nodes.tick(SILENT_TICKS_MAX);
    expect(nodes.suspected).toEqual([{ by: 1, node: 2 }]);
  });

  it('and is slow, but answers pings, is not suspected', () => {
    const nodes = new Nodes(2);
    nodes.partition(2).reply = () => undefined;
    const answers = nodes.ask({ to: 2 });
    nodes.tick(90);
    expect(nodes.suspected).toEqual([]);
    nodes.partition(2).asked[0]?.answer(GRANT);
    nodes.settle();
    expect(answers).toEqual([GRANT]);
  });

  it('gets no pings when it has answered everything', () => {
    const nodes = new Nodes(2);
    nodes.ledBy(2);
    nodes.ask({ to: 2 });
    nodes.cut.add('1>2');
    nodes.tick(10 * SILENT_TICKS_MAX);
    expect(nodes.suspected).toEqual([]);
  });

  it('is not suspected on a new connection', () => {
    const nodes = new Nodes(2);
    nodes.cut.add('1>2');
    nodes.ask({ to: 2 });
    nodes.tick(SILENT_TICKS_MAX);
    nodes.forwarders.get(1)?.peerDisconnected(2);
    expect(nodes.forwarders.get(1)?.isReachable(2)).toBe(true);
  });
});

describe('a node that says it is leaving', () => {
  it('cannot be reached from then on, until its next process', () => {
    for (const end of ['peerLost', 'peerDisconnected'] as const) {
      const nodes = new Nodes(2);
      const own = nodes.forwarders.get(1);
      own?.peerLeaves(2);
      expect(own?.isReachable(2)).toBe(false);
      own?.[end](2);
      expect(own?.isReachable(2)).toBe(true);
    }
  });

  it('is asked again if it is still there long after: its message may have been late', () => {
    const nodes = new Nodes(2);
    const own = nodes.forwarders.get(1);
    own?.peerLeaves(2);
    nodes.tick(Math.ceil(9_900 / TICK_MILLIS));
    expect(own?.isReachable(2)).toBe(false);
    nodes.tick(Math.ceil(200 / TICK_MILLIS));
    expect(own?.isReachable(2)).toBe(true);
  });

  it('still answers earlier requests', () => {
    const nodes = new Nodes(2);
    nodes.partition(2).reply = () => undefined;
    const answers = nodes.ask({ to: 2 });
    nodes.forwarders.get(1)?.peerLeaves(2);
    const leaving = nodes.forwarders.get(2);
    expect(leaving?.owesAnswers).toBe(false);
    nodes.partition(2).asked[0]?.answer(GRANT);
    // The answer is decided, but not sent: the process must not end yet.
    expect(leaving?.owesAnswers).toBe(true);
    nodes.settle();
    expect(leaving?.owesAnswers).toBe(false);
    expect(answers).toEqual([GRANT]);
  });
});
