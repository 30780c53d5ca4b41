/** Tests how a node collects the figures of others, waits until a deadline, and lists silent nodes. */
import { describe, expect, it } from 'vitest';
import type { UsageResult } from '../../src/api/usage.ts';
import { USAGE_DEADLINE_MILLIS, USAGE_QUESTIONS_MAX, UsageExchange } from '../../src/node/usage-exchange.ts';
import { UsageTable } from '../../src/usage/usage-table.ts';
import { decodeUsageQuestion, decodeUsageReport } from '../../src/wire/usage.ts';

const MINUTE = 29_000_000;
const QUERY = { minutes: 1, top: 3 };

/** Three nodes, and a network that holds every frame until it is delivered. */
class Nodes {
  readonly unreachable = new Set<number>();
  nowMillis = 0;
  #frames: (() => void)[] = [];
  readonly #nodes = new Map<number, UsageExchange>();

  constructor() {
    for (const node of [1, 2, 3]) this.#nodes.set(node, this.#start(node));
  }

  node(id: number): UsageExchange {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  deliver(): void {
    while (this.#frames.length > 0) this.#frames.shift()?.();
  }

  pass(millis: number): void {
    this.nowMillis += millis;
    for (const node of this.#nodes.values()) node.tick();
  }

  /** Node i has i grants of rule r, and one of its own rule. */
  #start(nodeId: number): UsageExchange {
    const table = new UsageTable(9);
    table.turnTo(MINUTE);
    for (let i = 0; i < nodeId; i += 1) table.decided('r', true, 'ada');
    table.decided(`of-${nodeId}`, false, 'bob');
    const init = {
      nodeId,
      random: () => 1_000 * nodeId,
      clocks: { monotonicMillis: () => this.nowMillis, wallMillis: () => MINUTE * 60_000 + 59_999 },
      usage: table.usage.bind(table),
      send: (to: number, type: string, payload: Uint8Array) => {
        if (this.unreachable.has(to)) return false;
        this.#frames.push(() => {
          if (type === 'usage') this.node(to).receiveQuestion(nodeId, decodeUsageQuestion(payload));
          else this.node(to).receiveReported(nodeId, decodeUsageReport(payload));
        });
        return true;
      },
    };
    return new UsageExchange(init, () => [1, 2, 3]);
  }
}

function asked(nodes: Nodes, at = 1): UsageResult[] {
  const results: UsageResult[] = [];
  nodes.node(at).ask(QUERY, (result) => results.push(result));
  return results;
}

describe('a node that is asked for the figures of all nodes', () => {
  it('adds them up', () => {
    const nodes = new Nodes();
    const results = asked(nodes, 2);
    expect(results).toEqual([]);
    nodes.deliver();
    expect(results).toEqual([
      {
        ok: true,
        report: {
          minutes: 1,
          nodes: [1, 2, 3],
          silent: [],
          rules: [
            { rule: 'of-1', allowed: 0, denied: 1, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 },
            { rule: 'of-2', allowed: 0, denied: 1, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 },
            { rule: 'of-3', allowed: 0, denied: 1, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 },
            { rule: 'r', allowed: 6, denied: 0, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 },
          ],
          history: {
            fromMillis: MINUTE * 60_000,
            allowed: [6],
            denied: [3],
            unavailable: [0],
            degraded: [0],
          },
          top: {
            fromMillis: (Math.floor(MINUTE / 60) - 1) * 3_600_000,
            allowed: [{ rule: 'r', key: 'ada', count: 6, error: 0 }],
            denied: ['of-1', 'of-2', 'of-3'].map((rule) => ({ rule, key: 'bob', count: 1, error: 0 })),
          },
        },
      },
    ]);
  });

  it('lists unreachable nodes as silent, at once', () => {
    const nodes = new Nodes();
    nodes.unreachable.add(2).add(3);
    expect(asked(nodes)).toMatchObject([{ report: { nodes: [1], silent: [2, 3] } }]);
  });

  it('lists nodes as silent that do not answer in time, and ignores their late answers', () => {
    const nodes = new Nodes();
    const results = asked(nodes);
    nodes.pass(USAGE_DEADLINE_MILLIS - 1);
    expect(results).toEqual([]);
    nodes.pass(1);
    nodes.deliver();
    expect(results).toMatchObject([{ report: { nodes: [1], silent: [2, 3] } }]);
  });

  it('lists a node as silent that is lost after it was asked', () => {
    const nodes = new Nodes();
    const results = asked(nodes);
    nodes.node(1).peerDisconnected(3);
    nodes.deliver();
    expect(results).toMatchObject([{ report: { nodes: [1, 2], silent: [3] } }]);
  });

  it('refuses a question beyond their number, and accepts the next when one has ended', () => {
    const nodes = new Nodes();
    for (let i = 0; i < USAGE_QUESTIONS_MAX; i += 1) expect(asked(nodes)).toEqual([]);
    expect(asked(nodes)).toEqual([{ ok: false, reason: 'tooMany' }]);
    nodes.deliver();
    expect(asked(nodes)).toEqual([]);
  });
});
