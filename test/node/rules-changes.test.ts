/** Tests that a change of the rules is checked, made once, and acknowledged when every partition has it. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ChangeResult } from '../../src/api/cluster-change.ts';
import { TIMING_DEFAULTS } from '../../src/config/config.ts';
import { type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import type { MetaChange, MetaState } from '../../src/meta/cluster-state.ts';
import { RulesChanges } from '../../src/node/rules-changes.ts';
import { matchingForm } from '../../src/rules/matching-form.ts';
import { definitionsOfTable } from '../../src/rules/limiter-rules.ts';

const rules = [{ id: 'default', limit: 3, windowMillis: 1_000 }];
const STATE: MetaState = {
  version: 1,
  settledVersion: 1,
  nodes: [],
  settledNodes: [],
  placement: '',
  settledPlacement: '',
  rules: validateRuleTable({ version: 5, rules }),
  leaving: [],
  retired: [],
  clusterVersion: 1,
};

function table(version: number): RuleTable {
  return validateRuleTable({ version, rules });
}

class Replica {
  ruleTable: RuleTable | undefined;
  readonly wanted: number[] = [];

  constructor(version: number) {
    this.ruleTable = table(version);
  }

  wantRules({ version }: RuleTable): void {
    this.wanted.push(version);
  }
}

/** A node that holds two of four partitions. */
class Node {
  readonly replicas = new Map([
    [0, new Replica(5)],
    [2, new Replica(4)],
  ]);
  readonly meta: { state: MetaState | undefined } = { state: STATE };
  readonly asked: { readonly change: MetaChange; readonly done: (result: ChangeResult) => void }[] = [];
  readonly reported: ChangeResult[] = [];
  readonly changes = new RulesChanges({
    core: { partitions: this.replicas, meta: this.meta },
    partitionCount: 4,
    timing: TIMING_DEFAULTS,
    change: (change, done) => this.asked.push({ change, done }),
  });

  ask(
    asked: { readonly rules?: unknown; readonly horizon?: number; readonly ifVersion?: number } = {},
  ): void {
    const { horizon } = asked;
    const options = horizon === undefined ? {} : { requestIdHorizonMillis: horizon };
    const table = { rules: asked.rules ?? rules, ...options };
    const change = { table, ifVersion: asked.ifVersion };
    this.changes.change(change, (result) => this.reported.push(result));
  }

  /** Group 0 accepts the change. */
  commit(): void {
    const { change, done } = this.asked.at(-1) ?? expect.fail('no change was sent');
    if (change.type !== 'rules') expect.fail('not a change of the rules');
    this.meta.state = { ...STATE, rules: change.table };
    this.changes.handOn();
    done({ ok: true, version: change.table.version });
  }

  apply(partition: number, version: number): void {
    this.hold(partition, table(version));
  }

  hold(partition: number, ruleTable: RuleTable): void {
    const replica = this.replicas.get(partition) ?? expect.fail('not here');
    replica.ruleTable = ruleTable;
  }

  hear(partition: number, rulesVersion: number): void {
    const position = { isLeader: true, term: 1, commit: 9, applied: 9, lastIndex: 9, members: [] };
    const partitions = [{ partition, rulesVersion, ...position }];
    this.changes.heard({ node: 2, pid: 1, clock: 'fit', partitions, speaks: 1 });
  }
}

describe('a change of the rules', () => {
  let node = new Node();
  beforeEach(() => {
    node = new Node();
  });

  it('gets the version after the newest known one, and reaches every partition of this node', () => {
    node.ask({ ifVersion: 5 });
    expect(node.asked[0]?.change).toEqual({ type: 'rules', base: 5, table: table(6) });
    node.commit();
    expect([...node.replicas.values()].map(({ wanted }) => wanted)).toEqual([[6], [6]]);
    expect(node.changes.newest?.version).toBe(6);
    node.ask();
    expect(node.asked[1]?.change).toMatchObject({ base: 6, table: { version: 7 } });
  });

  it('contains how the earlier rules match requests, if the new ones match them differently', () => {
    node.ask({ rules: [{ id: 'default', limit: 9, windowMillis: 60_000 }] });
    expect(node.asked[0]?.change).not.toHaveProperty('matchedBefore');
    node.ask({ rules: [{ id: 'other', limit: 3, windowMillis: 1_000 }] });
    const matchedBefore = matchingForm(definitionsOfTable(table(5).rules));
    expect(node.asked[1]?.change).toMatchObject({ base: 5, matchedBefore });
  });

  it('is answered when every partition decides by it, on this node or elsewhere', () => {
    node.ask();
    node.commit();
    node.hear(1, 6);
    node.hear(3, 5);
    node.apply(0, 6);
    node.apply(2, 7);
    node.changes.tick();
    expect(node.reported).toEqual([]);
    node.hear(3, 6);
    node.changes.tick();
    expect(node.reported).toEqual([{ ok: true, version: 6, pending: [] }]);
    node.changes.tick();
    expect(node.reported).toHaveLength(1);
  });

  it('keeps the settings that it does not name', () => {
    node.meta.state = { ...STATE, rules: { ...table(5), clockDriftPpm: 5_000 } };
    node.ask({ ifVersion: 5 });
    const expected = { ...table(6), clockDriftPpm: 5_000 };
    expect(node.asked[0]?.change).toEqual({ type: 'rules', base: 5, table: expected });
  });

  it('names the partitions that do not decide by it in time', () => {
    node.ask();
    node.commit();
    node.apply(0, 6);
    for (let tick = 0; tick < 2_000; tick += 1) node.changes.tick();
    expect(node.reported).toEqual([{ ok: true, version: 6, pending: [1, 2, 3] }]);
  });

  it('is not made if the rules in force are not those that the client read', () => {
    node.ask({ ifVersion: 4 });
    expect(node.reported).toEqual([{ ok: false, reason: 'rulesChanged' }]);
    node.ask({ ifVersion: 5 });
    node.asked[0]?.done({ ok: false, reason: 'rulesChanged' });
    expect(node.reported[1]).toEqual({ ok: false, reason: 'rulesChanged' });
  });

  it('is not made if it is invalid', () => {
    node.ask({ rules: [{ id: 'default', limit: -1, windowMillis: 1_000 }] });
    expect(node.reported).toMatchObject([{ ok: false, reason: 'invalid', field: 'rules[0].limit' }]);
    node.ask({ horizon: 1_000 });
    expect(node.reported[1]).toMatchObject({ ok: false, reason: 'invalid', field: 'requestIdHorizonMillis' });
    expect(node.asked).toEqual([]);
  });

  it('is refused before the first rules, and while too many are open', () => {
    node.meta.state = undefined;
    node.ask();
    expect(node.reported).toMatchObject([{ ok: false, reason: 'notLeader' }]);
    node = new Node();
    for (let i = 0; i < 64; i += 1) {
      node.ask();
      node.commit();
    }
    node.ask();
    expect(node.reported).toEqual([{ ok: false, reason: 'overloaded' }]);
  });
});
