/** Labels of nodes in the state of group 0: refusals, the moves that follow, and that a repetition is harmless. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import type { LabelChange } from '../../src/api/cluster-change.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { ClusterPlacement, META_GROUP } from '../../src/meta/cluster-placement.ts';
import {
  decodeMetaCommand,
  decodeMetaRecord,
  encodeMeta,
  MetaDecodeError,
} from '../../src/meta/meta-form.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { Introduction, MetaCommand, MetaRecord } from '../../src/meta/cluster-state.ts';
import { decodePlacement } from '../../src/meta/placement-text.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { foundingPlacement, type PlacementTable } from '../../src/partition/placement.ts';
import { bestSharing, type Labelled, sharingOf } from '../partition/all-placements.ts';

const hash = await loadHash32();

function created(nodes: readonly Labelled[]): MetaRecord {
  const founders: Introduction[] = nodes.map((node) => ({ ...node, incarnation: `of ${node.id}` }));
  const fixed = { replicas: 3, partitions: 16, clusterVersion: 1 };
  const { record } = applyMetaCommand(
    undefined,
    { type: 'create', rules: FIRST_RULES, nodes: founders, ...fixed },
    hash,
  );
  if (record === undefined) throw new Error('nothing was created');
  return record;
}

function label(record: MetaRecord, change: LabelChange): ReturnType<typeof applyMetaCommand> {
  return applyMetaCommand(record, { type: 'label', change }, hash);
}

function labelled(record: MetaRecord, change: LabelChange): MetaRecord {
  const result = label(record, change);
  expect(result.refusal).toBeUndefined();
  return result.record ?? record;
}

function settled(record: MetaRecord): MetaRecord {
  const { version } = record.state;
  return applyMetaCommand(record, { type: 'settled', version }, hash).record ?? record;
}

function rowsOf({ state }: MetaRecord): PlacementTable {
  return decodePlacement(
    state.placement,
    state.nodes.map(({ id }) => id),
    3,
  );
}

function adding(node: NodeAddress): MetaCommand {
  return { type: 'nodes', change: { add: node } };
}

const none = (...ids: number[]): Labelled[] => ids.map((id) => ({ id }));

function checkSpread(record: MetaRecord): void {
  const { nodes } = record.state;
  const best = bestSharing(nodes, 3);
  for (const row of rowsOf(record)) expect(sharingOf(row, nodes)).toEqual(best);
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

describe('a label', () => {
  it('is kept until it is replaced or removed; labels that a change does not name stay', () => {
    const before = created(none(1, 2, 3, 4));
    const record = labelled(before, { node: 2, zone: 'a', host: 'm' });
    expect(record.state).toMatchObject({ version: 2, settledVersion: 1 });
    expect(record.state.nodes[1]).toEqual({ id: 2, incarnation: 'of 2', zone: 'a', host: 'm' });
    const moved = labelled(record, { node: 2, zone: 'b' });
    expect(moved.state.nodes[1]).toMatchObject({ zone: 'b', host: 'm' });
    const bare = labelled(moved, { node: 2, zone: null, host: null });
    expect(bare.state.nodes).toEqual(before.state.nodes);
    expect(bare.state.version).toBe(4);
  });

  it('that is set already changes nothing', () => {
    const record = labelled(created(none(1, 2, 3)), { node: 2, zone: 'a' });
    expect(labelled(record, { node: 2, zone: 'a' })).toBe(record);
    expect(labelled(record, { node: 2, host: null })).toBe(record);
  });

  it('of an unknown node is refused', () => {
    const record = created(none(1, 2, 3));
    expect(label(record, { node: 9, zone: 'a' })).toEqual({ record, refusal: 'unknownNode' });
  });

  it('may come with a node that is added', () => {
    const record = created(none(1, 2, 3));
    const add: NodeAddress = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 }, zone: 'a' };
    const change: MetaCommand = { type: 'nodes', change: { add } };
    expect(applyMetaCommand(record, change, hash).record?.state.nodes[3]).toMatchObject({ id: 4, zone: 'a' });
  });

  it('is not changed by adding its node again', () => {
    const add: NodeAddress = { id: 4, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 }, zone: 'a' };
    const added = applyMetaCommand(created(none(1, 2, 3)), adding(add), hash).record;
    expect(applyMetaCommand(added, adding(add), hash)).toEqual({ record: added });
    const other = adding({ ...add, zone: 'b' });
    expect(applyMetaCommand(added, other, hash)).toEqual({ record: added, refusal: 'nodeExists' });
    if (added === undefined) throw new Error('node 4 was not added');
    // A repetition that comes after the label was changed.
    const moved = labelled(added, { node: 4, zone: 'b' });
    expect(applyMetaCommand(moved, adding(add), hash)).toEqual({ record: moved });
  });

  it('stays when its node introduces itself', () => {
    const record = labelled(created(none(1, 2, 3)), { node: 2, zone: 'a' });
    const http = { host: 'h', port: 7 };
    const introduce: MetaCommand = { type: 'introduce', node: { id: 2, incarnation: 'of 2', http } };
    const after = applyMetaCommand(record, introduce, hash).record;
    expect(after?.state.nodes[1]).toMatchObject({ zone: 'a', http });
  });

  it('is in logs and snapshots unchanged, and damage is noticed', () => {
    const change = { node: 2, zone: 'a', host: null };
    expect(decodeMetaCommand(encodeMeta({ type: 'label', change }))).toEqual({ type: 'label', change });
    const record = labelled(created(none(1, 2, 3)), { node: 2, zone: 'a-zone' });
    expect(decodeMetaRecord([encodeMeta(record)])).toEqual(record);
    const damaged = new TextDecoder().decode(encodeMeta(record)).replace('a-zone', 'a zone');
    expect(() => decodeMetaRecord([bytes(damaged)])).toThrow(MetaDecodeError);
    for (const wrong of [
      {},
      { node: 2 },
      { node: 0, zone: 'a' },
      { node: 2, zone: '' },
      { node: 2, host: 7 },
    ]) {
      const text = JSON.stringify({ type: 'label', change: wrong });
      expect(() => decodeMetaCommand(bytes(text))).toThrow(MetaDecodeError);
    }
  });
});

describe('the placement of nodes with labels', () => {
  it('begins with the ring, with which groups are created, and moves on from there at once', () => {
    const nodes = [1, 2, 3, 4, 5, 6].map((id) => ({ id, host: `m${id % 3}` }));
    const record = created(nodes);
    const ring = foundingPlacement([1, 2, 3, 4, 5, 6], 16, 3, hash);
    expect(record.state).toMatchObject({ version: 2, settledVersion: 1 });
    expect(decodePlacement(record.state.settledPlacement, record.state.settledNodes, 3)).toEqual(ring);
    checkSpread(record);
    expect(created(none(1, 2, 3, 4, 5, 6)).state).toMatchObject({ version: 1, settledVersion: 1 });
  });

  it('follows the labels when nodes join, leave or get other labels', () => {
    let record = created(none(1, 2, 3, 4, 5));
    for (const [node, zone] of Object.entries(['x', 'a', 'a', 'b', 'b', 'b']).slice(1)) {
      record = labelled(record, { node: Number(node), zone });
      checkSpread(record);
    }
    const node = { id: 6, http: { host: 'h', port: 1 }, peer: { host: 'h', port: 2 } };
    for (const change of [{ add: { ...node, zone: 'c', host: 'm' } }, { remove: 2 }]) {
      record = applyMetaCommand(settled(record), { type: 'nodes', change }, hash).record ?? record;
      checkSpread(record);
    }
    expect(rowsOf(record).every((row) => row.includes(6))).toBe(true);
    record = labelled(record, { node: 1, host: 'm' });
    checkSpread(record);
  });

  it('keeps the voters of group 0 on different hosts and zones, too', () => {
    const ids = [1, 2, 3, 4, 5, 6, 7];
    const placement = new ClusterPlacement(ids, 16, 3, hash);
    expect(placement.membersOf(META_GROUP).voters).toEqual([1, 2, 3, 4, 5]);
    const zones = ['a', 'a', 'a', 'a', 'b', 'b', 'c'];
    placement.update(created(ids.map((id, i) => ({ id, zone: zones[i] ?? 'a' }))).state);
    const { voters, learners } = placement.membersOf(META_GROUP);
    expect([voters, learners]).toEqual([
      [1, 2, 5, 6, 7],
      [3, 4],
    ]);
  });
});
