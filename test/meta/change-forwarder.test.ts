/** A change that reaches a node that does not lead group 0 is forwarded to the leader, once. */
import { beforeEach, describe, expect, it } from 'vitest';
import { validateRuleTable } from '../../src/limiter/rules.ts';
import { ChangeForwarder } from '../../src/meta/change-forwarder.ts';
import type { MetaGroup } from '../../src/meta/meta-group.ts';
import { SpokenVersions } from '../../src/meta/versions.ts';
import type { ChangeResult } from '../../src/api/cluster-change.ts';
import { decodeChange, decodeResult } from '../../src/meta/change-frames.ts';
import type { MetaChange } from '../../src/meta/cluster-state.ts';

const TABLE = validateRuleTable({ version: 8, rules: [{ id: 'a', limit: 3, windowMillis: 1_000 }] });
const NODE = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };

/** Two nodes that send each other frames; node 2 leads. */
class Pair {
  readonly asked: MetaChange[] = [];
  answer: ChangeResult | undefined = { ok: true, version: 7 };
  isConnected = true;
  drops = false;
  readonly forwarders = new Map<number, ChangeForwarder>();

  constructor() {
    for (const id of [1, 2]) {
      const meta = {
        isLeader: id === 2,
        leader: 2,
        change: (change: MetaChange, done: (result: ChangeResult) => void) => {
          this.asked.push(change);
          if (id === 1) done({ ok: false, reason: 'notLeader', leader: 2 });
          else if (this.answer !== undefined) done(this.answer);
        },
      };
      const forwarder = new ChangeForwarder({
        meta: meta as unknown as MetaGroup,
        versions: new SpokenVersions(id),
        isConnected: () => this.isConnected,
        send: (to, type, payload) => {
          if (this.drops) return false;
          const target = this.forwarders.get(to);
          if (type === 'change') target?.receiveChange(id, decodeChange(payload));
          else target?.receiveResult(id, decodeResult(payload));
          return true;
        },
        firstId: 100 * id,
      });
      this.forwarders.set(id, forwarder);
    }
  }

  node(id: number): ChangeForwarder {
    const forwarder = this.forwarders.get(id);
    if (forwarder === undefined) throw new Error(`there is no node ${id}`);
    return forwarder;
  }

  ask(id: number, change: MetaChange): ChangeResult[] {
    const reported: ChangeResult[] = [];
    this.node(id).change(change, (result) => reported.push(result));
    return reported;
  }
}

describe('a change of the nodes', () => {
  let pair = new Pair();
  beforeEach(() => {
    pair = new Pair();
  });

  it.each<[MetaChange]>([
    [{ type: 'nodes', change: { add: NODE } }],
    [{ type: 'nodes', change: { remove: 3 } }],
    [{ type: 'nodes', change: { add: NODE, remove: 3 } }],
    [{ type: 'rules', base: 5, table: TABLE }],
  ])('is decided by the leader, from any node: %j', (change) => {
    for (const id of [1, 2]) expect(pair.ask(id, change)).toEqual([{ ok: true, version: 7 }]);
    expect(pair.asked).toEqual([change, change]);
  });

  it.each<[ChangeResult]>([
    [{ ok: false, reason: 'tooFewNodes' }],
    [{ ok: false, reason: 'unknownOutcome' }],
    [{ ok: false, reason: 'notLeader', leader: 3 }],
  ])('returns its refusal: %j', (answer) => {
    pair.answer = answer;
    expect(pair.ask(1, { type: 'nodes', change: { remove: 3 } })).toEqual([answer]);
  });

  it('that cannot be sent did not happen', () => {
    pair.drops = true;
    expect(pair.ask(1, { type: 'nodes', change: { remove: 3 } })).toEqual([
      { ok: false, reason: 'notLeader', leader: 2 },
    ]);
    pair.isConnected = false;
    expect(pair.ask(1, { type: 'nodes', change: { remove: 3 } })).toEqual([
      { ok: false, reason: 'notLeader', leader: 2 },
    ]);
  });

  it('has an unknown outcome if the leader is lost, or silent for long', () => {
    pair.answer = undefined;
    const lost = pair.ask(1, { type: 'nodes', change: { remove: 3 } });
    pair.node(1).peerDisconnected(2);
    const silent = pair.ask(1, { type: 'nodes', change: { remove: 3 } });
    for (let i = 0; i < 600; i += 1) pair.node(1).tick();
    const unknown = { ok: false, reason: 'unknownOutcome' };
    expect([lost, silent]).toEqual([[unknown], [unknown]]);
  });

  it('is refused when too many are under way', () => {
    pair.answer = undefined;
    for (let i = 0; i < 64; i += 1) expect(pair.ask(1, { type: 'nodes', change: { remove: 3 } })).toEqual([]);
    expect(pair.ask(1, { type: 'nodes', change: { remove: 3 } })).toEqual([
      { ok: false, reason: 'overloaded' },
    ]);
  });

  it('ignores answers of a node that was not asked', () => {
    pair.answer = undefined;
    const reported = pair.ask(1, { type: 'nodes', change: { remove: 3 } });
    pair.node(1).receiveResult(3, { id: 100, result: { ok: true, version: 9 } });
    expect(reported).toEqual([]);
    pair.node(1).receiveResult(2, { id: 100, result: { ok: true, version: 9 } });
    expect(reported).toEqual([{ ok: true, version: 9 }]);
  });
});
