/** A change of the rules is checked, made once, and answered when every partition decides by it. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { RulesChangeResult } from '../../src/api/rules-change.ts';
import { TIMING_DEFAULTS } from '../../src/config/config.ts';
import { type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import type { MetaState } from '../../src/meta/meta-state.ts';
import { RulesChanges } from '../../src/node/rules-changes.ts';
import { digestOfRules } from '../../src/node/rules-digest.ts';
import type { ClusterChange, ClusterChangeResult } from '../../src/wire/cluster-changes.ts';

const rules = [{ id: 'default', limit: 3, windowMillis: 1_000 }];
const STATE: MetaState = {
  version: 1,
  settledVersion: 1,
  nodes: [],
  settledNodes: [],
  placement: '',
  settledPlacement: '',
  leaving: [],
  retired: [],
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

/** Four partitions, of which this node holds two. */
class Node {
  readonly replicas = new Map([
    [0, new Replica(5)],
    [2, new Replica(4)],
  ]);
  readonly meta = { state: STATE, leader: 2 };
  readonly asked: { readonly change: ClusterChange; readonly done: (result: ClusterChangeResult) => void }[] =
    [];
  readonly told: RulesChangeResult[] = [];
  readonly changes = new RulesChanges({
    core: { partitions: this.replicas, meta: this.meta },
    partitionCount: 4,
    fileVersion: 5,
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
    this.changes.change(change, (result) => this.told.push(result));
  }

  /** Group 0 says yes. */
  commit(): void {
    const { change, done } = this.asked.at(-1) ?? expect.fail('nothing was asked');
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

  hear(partition: number, rulesVersion: number, rules = table(rulesVersion)): void {
    const position = { isLeader: true, term: 1, commit: 9, applied: 9, lastIndex: 9, members: [] };
    const rulesDigest = digestOfRules(rules);
    const partitions = [{ partition, rulesVersion, rulesDigest, ...position }];
    this.changes.heard({ node: 2, pid: 1, clock: 'fit', partitions });
  }
}

describe('a change of the rules', () => {
  let node = new Node();
  beforeEach(() => {
    node = new Node();
  });

  it('is the next version of the newest that is known, and reaches every partition here', () => {
    node.ask({ ifVersion: 5 });
    expect(node.asked[0]?.change).toEqual({ type: 'rules', base: 0, table: table(6) });
    node.commit();
    expect([...node.replicas.values()].map(({ wanted }) => wanted)).toEqual([[6], [6]]);
    expect(node.changes.newest?.version).toBe(6);
    node.ask();
    expect(node.asked[1]?.change).toMatchObject({ base: 6, table: { version: 7 } });
  });

  it('is answered when every partition decides by it, here or elsewhere', () => {
    node.ask();
    node.commit();
    node.hear(1, 6);
    node.hear(3, 5);
    node.apply(0, 6);
    node.apply(2, 7);
    node.changes.tick();
    expect(node.told).toEqual([]);
    node.hear(3, 6);
    node.changes.tick();
    expect(node.told).toEqual([{ ok: true, version: 6, pending: [] }]);
    node.changes.tick();
    expect(node.told).toHaveLength(1);
  });

  it('overrules a file that brought others of the same version into a partition', () => {
    node.ask();
    node.commit();
    node.hold(0, { ...table(6), clockDriftPpm: 7 });
    node.apply(2, 6);
    for (const partition of [1, 3]) node.hear(partition, 6);
    node.changes.tick();
    expect(node.told).toEqual([]);
    for (let tick = 1; tick < 100; tick += 1) node.changes.tick();
    expect(node.asked[1]?.change).toEqual({ type: 'rules', base: 6, table: table(7) });
    node.commit();
    node.apply(0, 7);
    node.changes.tick();
    expect(node.told).toEqual([{ ok: true, version: 6, pending: [] }]);
  });

  it('overrules a file that brought others of the same version into a partition elsewhere', () => {
    node.ask();
    node.commit();
    for (const partition of [0, 2]) node.apply(partition, 6);
    node.hear(1, 6);
    node.hear(3, 6, { ...table(6), clockDriftPpm: 7 });
    for (let tick = 1; tick <= 100; tick += 1) node.changes.tick();
    expect(node.told).toEqual([]);
    expect(node.asked[1]?.change).toEqual({ type: 'rules', base: 6, table: table(7) });
    node.commit();
    node.hear(3, 7);
    node.changes.tick();
    expect(node.told).toEqual([{ ok: true, version: 6, pending: [] }]);
    for (let tick = 1; tick <= 100; tick += 1) node.changes.tick();
    expect(node.asked).toHaveLength(2);
  });

  it('is what is told of, and not what a file brought here under its version', () => {
    node.ask();
    node.commit();
    node.hold(0, { ...table(6), clockDriftPpm: 7 });
    expect(node.changes.newest).toEqual(table(6));
  });

  it('is newer than what any node has from a file, and leaves what it does not say', () => {
    node.hear(3, 9);
    node.hold(0, { ...table(5), clockDriftPpm: 5_000 });
    node.ask({ ifVersion: 5 });
    const expected = { ...table(10), clockDriftPpm: 5_000 };
    expect(node.asked[0]?.change).toEqual({ type: 'rules', base: 0, table: expected });
  });

  it('names the partitions that do not decide by it in time', () => {
    node.ask();
    node.commit();
    node.apply(0, 6);
    for (let tick = 0; tick < 2_000; tick += 1) node.changes.tick();
    expect(node.told).toEqual([{ ok: true, version: 6, pending: [1, 2, 3] }]);
  });

  it('is not made for others than were read', () => {
    node.ask({ ifVersion: 4 });
    expect(node.told).toEqual([{ ok: false, reason: 'rulesChanged' }]);
    node.ask({ ifVersion: 5 });
    node.asked[0]?.done({ ok: false, reason: 'rulesChanged' });
    expect(node.told[1]).toEqual({ ok: false, reason: 'rulesChanged' });
  });

  it('that is not sound is not made', () => {
    node.ask({ rules: [{ id: 'default', limit: -1, windowMillis: 1_000 }] });
    expect(node.told).toMatchObject([{ ok: false, reason: 'invalid', field: 'rules[0].limit' }]);
    node.ask({ horizon: 1_000 });
    expect(node.told[1]).toMatchObject({ ok: false, reason: 'invalid', field: 'requestIdHorizonMillis' });
    expect(node.asked).toEqual([]);
  });

  it('waits for the first rules, and for room', () => {
    node.replicas.clear();
    node.ask();
    expect(node.told).toEqual([{ ok: false, reason: 'notLeader' }]);
    node = new Node();
    for (let i = 0; i < 64; i += 1) {
      node.ask();
      node.commit();
    }
    node.ask();
    expect(node.told).toEqual([{ ok: false, reason: 'overloaded' }]);
  });
});

describe('a document of rules', () => {
  it('holds until a file of a greater version has brought other rules, for longer than news take', () => {
    const node = new Node();
    const document = 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]';
    node.changes.change({ table: {}, document, ifVersion: undefined }, () => undefined);
    const { change } = node.asked[0]!;
    expect(change).toMatchObject({ table: { version: 6, rules: [{ id: 'user', limit: 2 }] } });
    const { table: rulesOfDocument, definitions } = change as Extract<ClusterChange, { type: 'rules' }>;
    const state: MetaState = { ...STATE, rules: rulesOfDocument, definitions: definitions! };
    node.meta.state = state;
    node.hold(0, rulesOfDocument);
    for (let tick = 0; tick < 2_000; tick += 1) node.changes.tick();
    expect(node.changes.known).toBe(state);
    node.apply(0, 7);
    for (let tick = 0; tick < 6_000; tick += 1) node.changes.tick();
    expect(node.changes.known).toBe(state);
    for (let tick = 0; tick < 100; tick += 1) node.changes.tick();
    expect(node.changes.known).toMatchObject({ rules: rulesOfDocument });
    expect(node.changes.known).not.toHaveProperty('definitions');
    node.meta.state = { ...state, rules: { ...rulesOfDocument, version: 8 } };
    // At once: it is known to be newer.
    expect(node.changes.known).toHaveProperty('definitions');
    for (let tick = 0; tick < 100; tick += 1) node.changes.tick();
    expect(node.changes.known).toHaveProperty('definitions');
  });
});

describe('the rules of which the default one decides', () => {
  const LOOKS_OF_A_MINUTE = 6_100;
  let node = new Node();
  beforeEach(() => {
    node = new Node();
  });

  it('are not known before group 0 is', () => {
    const { state } = node.meta;
    Object.assign(node.meta, { state: undefined });
    expect(node.changes.versionWithoutDocument).toBeUndefined();
    node.meta.state = state;
    expect(node.changes.versionWithoutDocument).toBe(5);
  });

  it('are of the file, or the last that group 0 was told', () => {
    node.meta.state = { ...STATE, rules: table(4) };
    expect(node.changes.versionWithoutDocument).toBe(5);
    node.meta.state = { ...STATE, rules: table(8) };
    expect(node.changes.versionWithoutDocument).toBe(8);
  });

  it('are none while a document is in force, whatever a partition has', () => {
    node.meta.state = { ...STATE, rules: table(6), definitions: '[]' };
    node.apply(0, 7);
    expect(node.changes.versionWithoutDocument).toBeUndefined();
  });

  it('are not those that a partition has before this node may have heard of their document', () => {
    const wait = (): void => {
      for (let tick = 0; tick < LOOKS_OF_A_MINUTE; tick += 1) node.changes.tick();
    };
    node.apply(0, 6);
    node.meta.leader = 0;
    wait();
    expect(node.changes.versionWithoutDocument).toBe(5);
    node.meta.leader = 2;
    wait();
    expect(node.changes.versionWithoutDocument).toBe(6);
    node.apply(0, 7);
    expect(node.changes.versionWithoutDocument).toBe(5);
    wait();
    expect(node.changes.versionWithoutDocument).toBe(7);
  });
});
