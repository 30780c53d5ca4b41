/** The replicated list of nodes: which changes are valid, and that a repetition is harmless. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import type { NodeChange } from '../../src/api/cluster-change.ts';
import { decodeMetaCommand, decodeMetaRecord, encodeMeta } from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { Introduction, MetaRecord } from '../../src/meta/cluster-state.ts';
import { type RuleTable, validateRuleTable } from '../../src/limiter/rules.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { decodePlacement } from '../../src/meta/placement-text.ts';
import { foundingPlacement, placementAfter, type PlacementTable } from '../../src/partition/placement.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { NODES_MAX } from '../../src/config/config.ts';

const hash = await loadHash32();

function founder(id: number): Introduction {
  return { ...node(id), incarnation: `of ${id}` };
}

function node(id: number, port = id): NodeAddress {
  return { id, http: { host: 'h', port }, peer: { host: 'h', port: 1_000 + port } };
}

function created(...ids: number[]): MetaRecord {
  const nodes = ids.map(founder);
  const { record } = applyMetaCommand(
    undefined,
    { type: 'create', rules: FIRST_RULES, nodes, replicas: 3, partitions: 16, clusterVersion: 1 },
    hash,
  );
  if (record === undefined) throw new Error('nothing was created');
  return record;
}

function changed(record: MetaRecord, change: NodeChange): MetaRecord {
  const result = applyMetaCommand(record, { type: 'nodes', change }, hash);
  expect(result.refusal).toBeUndefined();
  return result.record ?? record;
}

function refusal(record: MetaRecord, change: NodeChange): string | undefined {
  const result = applyMetaCommand(record, { type: 'nodes', change }, hash);
  expect(result.record).toBe(record);
  return result.refusal;
}

function settled(record: MetaRecord, version: number): MetaRecord {
  return applyMetaCommand(record, { type: 'settled', version }, hash).record ?? record;
}

function rowsOf({ state }: MetaRecord): PlacementTable {
  const nodes = state.nodes.map(({ id }) => id);
  return decodePlacement(state.placement, nodes, 3);
}

function table(version: number): RuleTable {
  return validateRuleTable({ version, rules: [{ id: 'default', limit: version, windowMillis: 1_000 }] });
}

function asked(record: MetaRecord, version: number, base: number): ReturnType<typeof applyMetaCommand> {
  return applyMetaCommand(record, { type: 'rules', table: table(version), base }, hash);
}

describe('the rules', () => {
  it('are the last ones; the list of nodes does not change', () => {
    const before = created(1, 2, 3);
    const { record = before, refusal: refused } = asked(before, 4, 1);
    expect([refused, record.state]).toEqual([undefined, { ...before.state, rules: table(4) }]);
    expect(asked(record, 5, 4).record?.state.rules).toEqual(table(5));
    expect(decodeMetaRecord([encodeMeta(record)])).toEqual(record);
  });

  it('keep the definitions of earlier rules: each once, newest first, at most 8, and at most a MiB', () => {
    let record = created(1, 2, 3);
    const replace = (matchedBefore?: string): readonly string[] => {
      const base = record.state.rules.version;
      const more = matchedBefore === undefined ? {} : { matchedBefore };
      const change = { type: 'rules', table: table(base + 1), base, ...more } as const;
      record = applyMetaCommand(record, change, hash).record ?? record;
      return (record.state.matchedBefore ?? []).map(({ definitions }) => definitions);
    };
    expect(replace()).toEqual([]);
    expect(['a', 'b', 'a'].map(replace).at(-1)).toEqual(['a', 'b']);
    expect(replace()).toEqual(['a', 'b']);
    expect(record.state.matchedBefore?.[0]?.horizonMillis).toBe(FIRST_RULES.requestIdHorizonMillis);
    expect(decodeMetaRecord([encodeMeta(record)])).toEqual(record);
    const more = ['c', 'd', 'e', 'f', 'g', 'h', 'i'];
    expect(more.map(replace).at(-1)).toEqual([...more.toReversed(), 'a']);
    const long = 'x'.repeat((1 << 20) - 2);
    expect(replace(long)).toEqual([long, 'i', 'h']);
    expect(replace(`${long}yyy`)).toEqual([]);
  });

  it.each([
    ['they were changed meanwhile', 6, 0],
    ['they are older', 3, 4],
    ['they are of the same version', 4, 4],
  ])('stay if %s', (_, version, base) => {
    const before = created(1, 2, 3);
    const { record = before } = asked(before, 4, 1);
    expect(asked(record, version, base)).toEqual({ record, refusal: 'rulesChanged' });
  });
});

describe('the placement', () => {
  it("of the founders is the ring's", () => {
    const record = created(3, 1, 2, 9);
    expect(rowsOf(record)).toEqual(foundingPlacement([1, 2, 3, 9], 16, 3, hash));
    expect(record.state.settledPlacement).toBe(record.state.placement);
  });

  it('is computed from the previous one, even if nodes joined or left since all groups had moved', () => {
    const first = created(1, 2, 3, 9);
    const second = changed(first, { add: node(4) });
    const [founders, all, kept] = [
      [1, 2, 3, 9],
      [1, 2, 3, 4, 9],
      [1, 3, 4, 9],
    ].map((ids) => ids.map((id) => ({ id })));
    const joined = { before: founders ?? [], table: rowsOf(first), after: all ?? [] };
    expect(rowsOf(second)).toEqual(placementAfter(joined, hash));
    const third = changed(second, { remove: 2 });
    const left = { before: all ?? [], table: rowsOf(second), after: kept ?? [], settled: rowsOf(first) };
    expect(rowsOf(third)).toEqual(placementAfter(left, hash));
    const fourth = changed(third, { add: node(5), remove: 9 });
    const replaced = rowsOf(third).map((row) => row.map((id) => (id === 9 ? 5 : id)));
    expect(rowsOf(fourth)).toEqual(replaced);
    expect(fourth.state.settledPlacement).toBe(first.state.placement);
    expect(settled(fourth, 4).state.settledPlacement).toBe(fourth.state.placement);
  });

  it('stays when only an address or a rule changes', () => {
    const record = changed(created(1, 2, 3), { add: node(4) });
    const introduced = applyMetaCommand(record, { type: 'introduce', node: founder(4) }, hash).record;
    expect(introduced).not.toBe(record);
    expect(introduced?.state.placement).toBe(record.state.placement);
    expect(asked(record, 4, 0).record?.state.placement).toBe(record.state.placement);
  });
});

describe('the list of nodes', () => {
  it('begins with the founders of the first leader; later create commands change nothing', () => {
    const record = created(3, 1, 2);
    expect(record.state).toMatchObject({ version: 1, settledVersion: 1, settledNodes: [1, 2, 3] });
    const again = applyMetaCommand(
      record,
      {
        type: 'create',
        rules: FIRST_RULES,
        nodes: [founder(9)],
        replicas: 1,
        partitions: 16,
        clusterVersion: 1,
      },
      hash,
    );
    expect(again.record).toBe(record);
  });

  it('grows and shrinks, and contains leaving nodes until all partitions have moved', () => {
    let record = changed(created(1, 2, 3), { add: node(4), remove: 2 });
    expect(record.state).toMatchObject({ version: 2, settledVersion: 1, retired: [2] });
    expect(record.state.nodes.map(({ id }) => id)).toEqual([1, 3, 4]);
    expect(record.state.leaving).toEqual([founder(2)]);
    record = settled(record, 1);
    expect(record.state.leaving).toHaveLength(1);
    record = settled(record, 2);
    expect(record.state).toMatchObject({
      settledVersion: 2,
      settledNodes: [1, 3, 4],
      leaving: [],
      retired: [2],
    });
  });

  it('may change again before the partitions have moved', () => {
    const record = changed(changed(created(1, 2, 3), { add: node(4) }), { remove: 1 });
    expect(record.state).toMatchObject({ version: 3, settledVersion: 1, settledNodes: [1, 2, 3] });
    expect(record.state.leaving.map(({ id }) => id)).toEqual([1]);
  });

  it.each<[string, NodeChange]>([
    ['an addition', { add: node(4) }],
    ['a removal', { remove: 4 }],
    ['a replacement', { add: node(5), remove: 4 }],
  ])('accepts %s twice and makes it once', (_what, change) => {
    const before = changed(created(1, 2, 3), { add: node(4) });
    const once = changed(before, change);
    expect(changed(once, change)).toBe(once);
  });

  it.each<[string, NodeChange]>([
    ['emptyChange', {}],
    ['retiredNode', { add: node(4), remove: 4 }],
    ['nodeExists', { add: node(3, 33) }],
    ['nodeExists', { add: node(5, 3) }],
    ['unknownNode', { remove: 7 }],
    ['tooFewNodes', { remove: 1 }],
  ])('refuses with %s: %j', (reason, change) => {
    expect(refusal(created(1, 2, 3), change)).toBe(reason);
  });

  it('never accepts an id again that was removed', () => {
    const record = changed(created(1, 2, 3, 4), { remove: 4 });
    expect(refusal(record, { add: node(4) })).toBe('retiredNode');
    expect(refusal(record, { add: node(4, 44) })).toBe('retiredNode');
  });

  it('lets a machine replace another at the same address', () => {
    const record = changed(created(1, 2, 3), { add: node(4, 2), remove: 2 });
    expect(record.state.nodes.map(({ id }) => id)).toEqual([1, 3, 4]);
  });

  it('has a maximum', () => {
    const full = created(...Array.from({ length: NODES_MAX }, (_, i) => i + 1));
    expect(refusal(full, { add: node(NODES_MAX + 1) })).toBe('tooManyNodes');
  });

  it('survives a snapshot', () => {
    const record = changed(created(1, 2, 3), { add: node(4), remove: 2 });
    const bytes = encodeMeta(record);
    expect(decodeMetaRecord([bytes.subarray(0, 7), bytes.subarray(7)])).toEqual(record);
    expect(decodeMetaRecord([encodeMeta(null)])).toBeUndefined();
    const command = { type: 'nodes', change: { remove: 3 } } as const;
    expect(decodeMetaCommand(encodeMeta(command))).toEqual(command);
  });
});
