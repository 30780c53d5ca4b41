/** Tests where leaders gather, with virtual time, a few nodes, and scripted loads. */
import { describe, expect, it } from 'vitest';
import { NO_NODE } from '../../raft/types.ts';
import { Gathering } from '../../src/node/gathering.ts';
import { decodeLoadReport, encodeLoadReport } from '../../src/wire/small-frames.ts';
import { seeded } from '../raft/seeded.ts';

interface TestNode {
  readonly gathering: Gathering;
  busy: number;
  idleProcessors: number;
  askedPerSecond: number;
  asked: number;
  mayLead: boolean;
  /** The term in which a node leads group 0. */
  term: number | undefined;
  isUp: boolean;
  readonly changes: { readonly target: number; readonly atSeconds: number }[];
}

class TestNodes {
  readonly nodes = new Map<number, TestNode>();
  places: readonly number[] = [1, 2, 3];
  seconds = 0;

  constructor() {
    for (const id of [1, 2, 3]) this.nodes.set(id, this.#newNode(id));
    this.node(1).term = 1;
  }

  #newNode(nodeId: number): TestNode {
    const changes: TestNode['changes'] = [];
    const gathering = new Gathering({
      nodeId,
      monotonicMillis: () => this.seconds * 1_000,
      load: () => this.node(nodeId),
      mayLead: () => this.node(nodeId).mayLead,
      nodes: () => [1, 2, 3],
      places: () => this.places,
      decidesIn: () => this.node(nodeId).term,
      send: (to, report) => {
        if (this.node(to).isUp)
          this.node(to).gathering.receive(nodeId, decodeLoadReport(encodeLoadReport(report)));
      },
      changed: (target) => changes.push({ target, atSeconds: this.seconds }),
    });
    const load = { busy: 0, idleProcessors: 1, askedPerSecond: 0, asked: 0 };
    return { gathering, ...load, mayLead: true, term: undefined, isUp: true, changes };
  }

  node(id: number): TestNode {
    return this.nodes.get(id)!;
  }

  all(load: Partial<Pick<TestNode, 'busy' | 'idleProcessors' | 'askedPerSecond'>>): this {
    for (const node of this.nodes.values()) Object.assign(node, load);
    return this;
  }

  run(seconds: number): this {
    for (const until = this.seconds + seconds; this.seconds < until;) {
      this.seconds += 1;
      for (const node of this.nodes.values()) {
        if (!node.isUp) continue;
        node.asked += node.askedPerSecond;
        node.gathering.tick();
      }
    }
    return this;
  }

  /** By node: the node on which it believes leaders to be gathered. */
  get targets(): readonly number[] {
    return [...this.nodes.values()].map(({ gathering }) => gathering.target);
  }
}

const SPREAD = [NO_NODE, NO_NODE, NO_NODE];

/** Leaders are gathered on node 1. */
function gathered(): TestNodes {
  return new TestNodes().run(10);
}

/** Leaders were gathered, and are not any more. */
function spread(): TestNodes {
  const nodes = gathered();
  for (const node of nodes.nodes.values()) node.mayLead = false;
  nodes.run(2);
  for (const node of nodes.nodes.values()) node.mayLead = true;
  return nodes;
}

describe('leaders gather', () => {
  it('at once in a cluster that starts, and all nodes know on which node', () => {
    expect(new TestNodes().all({ busy: 0.5, askedPerSecond: 1_000 }).run(3).targets).toEqual([1, 1, 1]);
  });

  it('in one that starts with a high load when that is over', () => {
    const nodes = new TestNodes();
    nodes.node(3).busy = 0.7;
    expect(nodes.run(100).targets).toEqual(SPREAD);
    nodes.node(3).busy = 0.5;
    expect(nodes.run(2).targets).toEqual([1, 1, 1]);
  });

  it('again soon in an idle cluster', () => {
    const nodes = spread();
    expect(nodes.run(4).targets).toEqual(SPREAD);
    expect(nodes.run(4).targets).toEqual([1, 1, 1]);
  });

  it('on the node that gets most requests', () => {
    const nodes = new TestNodes();
    nodes.node(3).askedPerSecond = 10;
    expect(nodes.run(10).targets).toEqual([3, 3, 3]);
  });

  it('after a calm minute in a cluster with requests', () => {
    const nodes = spread().all({ busy: 0.2, askedPerSecond: 1_000 });
    expect(nodes.run(58).targets).toEqual(SPREAD);
    nodes.node(2).busy = 0.5;
    nodes.run(1).node(2).busy = 0.2;
    expect(nodes.run(58).targets).toEqual(SPREAD);
    expect(nodes.run(6).targets).toEqual([1, 1, 1]);
  });

  it('only on a node that may lead and holds every partition', () => {
    const nodes = new TestNodes();
    nodes.node(1).mayLead = false;
    nodes.places = [1, 3];
    expect(nodes.run(10).targets).toEqual([3, 3, 3]);
  });

  it('on no node if none is suitable', () => {
    const nodes = new TestNodes();
    nodes.places = [];
    expect(nodes.run(200).targets).toEqual(SPREAD);
  });
});

describe('gathered leaders', () => {
  it('stay while their node is not busy, for any load of others', () => {
    const nodes = gathered().all({ busy: 0.9 });
    nodes.node(1).busy = 0.59;
    expect(nodes.run(300).targets).toEqual([1, 1, 1]);
  });

  it('spread when it is busy for three seconds in a row, and gather again after a calm minute', () => {
    const nodes = gathered();
    nodes.node(1).busy = 0.7;
    expect(nodes.run(2).targets).toEqual([1, 1, 1]);
    nodes.node(1).busy = 0.5;
    nodes.run(1).node(1).busy = 0.7;
    expect(nodes.run(2).targets).toEqual([1, 1, 1]);
    expect(nodes.run(1).targets).toEqual(SPREAD);
    expect(nodes.all({ busy: 0.3 }).run(59).targets).toEqual(SPREAD);
    expect(nodes.run(3).targets).toEqual([1, 1, 1]);
  });

  it('gather again after twice as long each time that they were too much for one node, up to half an hour', () => {
    const nodes = gathered();
    for (const minutes of [1, 2, 4, 8, 16, 32, 32]) {
      nodes.node(1).busy = 0.7;
      expect(nodes.run(3).targets).toEqual(SPREAD);
      nodes.node(1).busy = 0;
      expect(nodes.run(minutes * 60 - 2).targets).toEqual(SPREAD);
      expect(nodes.run(5).targets).toEqual([1, 1, 1]);
    }
    // They stay for half an hour: the earlier failures are forgotten.
    nodes.run(1_800).node(1).busy = 0.7;
    expect(nodes.run(3).targets).toEqual(SPREAD);
    nodes.node(1).busy = 0;
    expect(nodes.run(62).targets).toEqual([1, 1, 1]);
  });

  it('stay on a busy node while no other has a free processor, as when all nodes are on one machine', () => {
    const nodes = gathered().all({ idleProcessors: 0.25 });
    nodes.node(1).idleProcessors = 3;
    Object.assign(nodes.node(3), { idleProcessors: 3, mayLead: false });
    nodes.run(1).node(1).busy = 0.9;
    expect(nodes.run(100).targets).toEqual([1, 1, 1]);
    nodes.node(2).idleProcessors = 0.3;
    expect(nodes.run(4).targets).toEqual(SPREAD);
  });

  it('spread at once when their node may not lead any more, or is silent', () => {
    const drained = gathered();
    drained.node(1).mayLead = false;
    expect(drained.run(1).targets).toEqual(SPREAD);
    const silent = gathered();
    Object.assign(silent.node(1), { isUp: false, term: undefined });
    silent.node(2).term = 2;
    expect(silent.run(5).targets.slice(1)).toEqual(SPREAD.slice(1));
  });

  it('move to another node that gets many more requests, if that lasts', () => {
    const nodes = gathered();
    Object.assign(nodes.node(1), { busy: 0.2, askedPerSecond: 400 });
    Object.assign(nodes.node(2), { busy: 0.2, askedPerSecond: 1_000 });
    expect(nodes.run(8).targets).toEqual([1, 1, 1]);
    nodes.node(2).askedPerSecond = 500;
    nodes.run(1).node(2).askedPerSecond = 1_000;
    expect(nodes.run(8).targets).toEqual([1, 1, 1]);
    expect(nodes.run(5).targets).toEqual([2, 2, 2]);
  });
});

describe('the decision of where to gather', () => {
  it('is the one of the newest term, and a new deciding node continues from it', () => {
    const nodes = gathered();
    nodes.node(2).term = 2;
    // Node 1 does not know yet that another leads group 0.
    nodes.node(1).busy = 0.5;
    expect(nodes.run(20).targets).toEqual([1, 1, 1]);
    nodes.node(1).busy = 0.7;
    expect(nodes.run(3).targets).toEqual(SPREAD);
    expect(nodes.node(1).changes.at(-1)?.target).toBe(NO_NODE);
  });

  it('does not count if it is of an earlier term', () => {
    const nodes = gathered();
    nodes.node(2).term = 2;
    nodes.run(3);
    const late = {
      busyPermille: 0,
      sparePermille: 0,
      askedPerSecond: 0,
      mayLead: true,
      decided: { term: 1, target: 3 },
    };
    nodes.node(3).gathering.receive(1, late);
    expect(nodes.node(3).gathering.target).toBe(1);
    nodes.node(3).gathering.receive(2, { ...late, decided: { term: 2, target: 3 } });
    expect(nodes.node(3).gathering.target).toBe(3);
  });

  it('is forgotten after some seconds without a deciding node', () => {
    const nodes = gathered();
    nodes.node(1).term = undefined;
    expect(nodes.run(3).targets).toEqual([1, 1, 1]);
    expect(nodes.run(3).targets).toEqual(SPREAD);
  });

  it('does not change back and forth under any loads', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const random = seeded(seed);
      const nodes = new TestNodes();
      for (let i = 0; i < 600; i += 1) {
        for (const node of nodes.nodes.values()) {
          if (random(10) > 0) continue;
          node.busy = random(1_000) / 1_000;
          node.askedPerSecond = random(5_000);
          node.mayLead = random(10) > 0;
        }
        nodes.run(1);
      }
      const gatherings = nodes.node(1).changes.filter(({ target }) => target !== NO_NODE);
      for (const [i, { atSeconds }] of gatherings.slice(1).entries())
        expect(atSeconds - (gatherings[i]?.atSeconds ?? 0), `seed ${seed}`).toBeGreaterThanOrEqual(5);
    }
  });
});
