/** Draining of nodes in the state of group 0: refusals, and that a repetition is harmless. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import { tooFewUndrainedText, undrainedMin } from '../../src/meta/draining.ts';
import {
  decodeMetaCommand,
  decodeMetaRecord,
  encodeMeta,
  MetaDecodeError,
} from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { MetaCommand, MetaRecord } from '../../src/meta/cluster-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';

const hash = await loadHash32();

function created(...ids: number[]): MetaRecord {
  const nodes = ids.map((id) => ({ id, incarnation: `of ${id}` }));
  const command: MetaCommand = {
    type: 'create',
    rules: FIRST_RULES,
    nodes,
    replicas: 1,
    partitions: 4,
    clusterVersion: 1,
  };
  const { record } = applyMetaCommand(undefined, command, hash);
  if (record === undefined) throw new Error('nothing was created');
  return record;
}

function drain(record: MetaRecord, node: number, isDraining = true): ReturnType<typeof applyMetaCommand> {
  return applyMetaCommand(record, { type: 'drain', change: { node, isDraining } }, hash);
}

function drained(record: MetaRecord, node: number, isDraining = true): MetaRecord {
  const result = drain(record, node, isDraining);
  expect(result.refusal).toBeUndefined();
  return result.record ?? record;
}

function idsOf({ state }: MetaRecord): number[] {
  return state.nodes.filter(({ draining }) => draining === true).map(({ id }) => id);
}

describe('a node that is drained', () => {
  it('stays drained until an operator ends the drain; a repetition changes nothing', () => {
    const before = created(1, 2, 3);
    const record = drained(before, 2);
    expect(idsOf(record)).toEqual([2]);
    expect(drained(record, 2)).toBe(record);
    const after = drained(record, 2, false);
    expect(after).toEqual(before);
    expect(drained(after, 2, false)).toBe(after);
  });

  it('is drained in snapshots too, and older snapshots have no drained nodes', () => {
    const before = created(1, 2, 3);
    const record = drained(before, 2);
    expect(decodeMetaRecord([encodeMeta(record)])).toEqual(record);
    expect(decodeMetaRecord([encodeMeta(before)])).toEqual(before);
    const text = new TextDecoder().decode(encodeMeta(record)).replace('"draining":true', '"draining":1');
    expect(() => decodeMetaRecord([new TextEncoder().encode(text)])).toThrow(MetaDecodeError);
  });

  it('stays drained when it introduces itself, and while it leaves the cluster', () => {
    const record = drained(created(1, 2, 3, 4), 2);
    const at = { host: 'h', port: 7 };
    const introduce: MetaCommand = { type: 'introduce', node: { id: 2, incarnation: 'of 2', http: at } };
    const introduced = applyMetaCommand(record, introduce, hash).record ?? record;
    expect(introduced.state.nodes[1]).toEqual({ id: 2, incarnation: 'of 2', http: at, draining: true });
    const removed = applyMetaCommand(record, { type: 'nodes', change: { remove: 2 } }, hash).record ?? record;
    expect(removed.state.leaving).toMatchObject([{ id: 2, draining: true }]);
  });

  it('changes neither the list of nodes nor the placement', () => {
    const before = created(1, 2, 3);
    const { nodes: _, ...rest } = drained(before, 2).state;
    const { nodes: __, ...restBefore } = before.state;
    expect(rest).toEqual(restBefore);
  });
});

describe('to drain a node is refused', () => {
  it('if it does not belong to the cluster', () => {
    const record = created(1, 2, 3);
    expect(drain(record, 9)).toEqual({ record, refusal: 'unknownNode' });
    expect(
      applyMetaCommand(undefined, { type: 'drain', change: { node: 1, isDraining: true } }, hash),
    ).toEqual({
      record: undefined,
      refusal: 'unknownNode',
    });
  });

  it.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 3],
    [5, 3],
    [7, 4],
  ])('of %i nodes if fewer than %i would be left', (count, least) => {
    expect(undrainedMin(count)).toBe(least);
    let record = created(...Array.from({ length: count }, (_, i) => i + 1));
    for (let node = 1; node <= count - least; node += 1) record = drained(record, node);
    expect(drain(record, count)).toEqual({ record, refusal: 'tooFewUndrained' });
  });

  it('with the numbers, and a remedy', () => {
    const nodes = [{ id: 1 }, { id: 2, draining: true as const }, { id: 3 }];
    expect(tooFewUndrainedText(nodes, 3)).toBe(
      'at least 2 of 3 nodes must stay undrained, but 1 would be left: node 2 is drained already; end that drain first, or add nodes',
    );
    expect(tooFewUndrainedText([{ id: 1 }], 1)).toBe(
      'at least 1 of 1 nodes must stay undrained, but 0 would be left; add nodes first',
    );
  });
});

describe('the command to drain a node', () => {
  it.each([true, false])('is decoded as it was encoded: %j', (isDraining) => {
    const command: MetaCommand = { type: 'drain', change: { node: 2, isDraining } };
    expect(decodeMetaCommand(encodeMeta(command))).toEqual(command);
  });

  it.each([{}, { change: {} }, { change: { node: 0, isDraining: true } }, { change: { node: 1 } }])(
    'is refused with the value %j',
    (fields) => {
      const bytes = new TextEncoder().encode(JSON.stringify({ type: 'drain', ...fields }));
      expect(() => decodeMetaCommand(bytes)).toThrow(MetaDecodeError);
    },
  );
});
