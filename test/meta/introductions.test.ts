/** Introductions of nodes are recorded: the first incarnation of an id forever, and the latest addresses. */
import { FIRST_RULES } from './first-rules.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { VERSIONS } from '../../src/api/versions.ts';
import type { MetaGroup } from '../../src/meta/meta-group.ts';
import { applyMetaCommand } from '../../src/meta/meta-state.ts';
import type { Introduction, MetaRecord, MetaState } from '../../src/meta/cluster-state.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { Registrar } from '../../src/meta/registrar.ts';

const hash = await loadHash32();

const at = (port: number): Required<Pick<Introduction, 'http' | 'peer'>> => ({
  http: { host: 'h', port },
  peer: { host: 'h', port: port + 1_000 },
});
const founder = (id: number): Introduction => ({ id, incarnation: `of ${id}`, ...at(id) });

function created(): MetaRecord {
  const nodes = [1, 2, 3].map(founder);
  const { record } = applyMetaCommand(
    undefined,
    { type: 'create', rules: FIRST_RULES, nodes, replicas: 3, partitions: 16, clusterVersion: 1 },
    hash,
  );
  if (record === undefined) throw new Error('nothing was created');
  return record;
}

function introduced(record: MetaRecord, node: Introduction): MetaRecord {
  return applyMetaCommand(record, { type: 'introduce', node }, hash).record ?? record;
}

function withFour(): MetaRecord {
  const add = { id: 4, http: { host: 'h', port: 4 }, peer: { host: 'h', port: 1_004 } };
  return applyMetaCommand(created(), { type: 'nodes', change: { add } }, hash).record ?? created();
}

const four = (record: MetaRecord): unknown => record.state.nodes.find(({ id }) => id === 4);

describe('the list of nodes', () => {
  it('accepts the first incarnation of a node, and no other after that', () => {
    const first = introduced(withFour(), { id: 4, incarnation: 'first' });
    expect(four(first)).toEqual({ id: 4, incarnation: 'first', ...at(4) });
    expect(introduced(first, { id: 4, incarnation: 'second', ...at(9) })).toBe(first);
    expect(introduced(first, { id: 4, incarnation: 'first' })).toBe(first);
  });

  it('accepts new addresses of a node, under the same version', () => {
    const before = introduced(withFour(), { id: 4, incarnation: 'first' });
    const moved = introduced(before, { id: 4, incarnation: 'first', ...at(40) });
    expect(four(moved)).toEqual({ id: 4, incarnation: 'first', ...at(40) });
    expect(moved.state.version).toBe(before.state.version);
    // Two nodes that swap their addresses have the same one for a while.
    const swapped = introduced(introduced(moved, { ...founder(1), ...at(2) }), { ...founder(2), ...at(1) });
    expect(swapped.state.nodes.slice(0, 2)).toEqual([
      { ...founder(1), ...at(2) },
      { ...founder(2), ...at(1) },
    ]);
  });

  it('recognizes a repeated change, even if the added node has introduced another address since', () => {
    const add = { id: 4, ...at(4) };
    const moved = introduced(withFour(), { id: 4, incarnation: 'first', ...at(40) });
    expect(applyMetaCommand(moved, { type: 'nodes', change: { add } }, hash)).toEqual({ record: moved });
    const other = { id: 4, ...at(41) };
    expect(applyMetaCommand(moved, { type: 'nodes', change: { add: other } }, hash).refusal).toBe(
      'nodeExists',
    );
    const { record } = applyMetaCommand(moved, { type: 'nodes', change: { remove: 4 } }, hash);
    expect(record?.added).toEqual([]);
    expect(applyMetaCommand(record, { type: 'nodes', change: { add } }, hash).refusal).toBe('retiredNode');
  });

  it('accepts addresses of a leaving node, and none of unknown ones', () => {
    const before = withFour();
    expect(introduced(before, { id: 9, incarnation: 'x', ...at(9) })).toBe(before);
    const leaving = applyMetaCommand(before, { type: 'nodes', change: { remove: 2 } }, hash).record ?? before;
    expect(introduced(leaving, { ...founder(2), ...at(22) }).state.leaving).toEqual([
      { ...founder(2), ...at(22) },
    ]);
  });
});

describe('the leader of group 0', () => {
  let asked: Introduction[];
  let group: { isLeader: boolean; state: MetaState | undefined };
  let registrar: Registrar;
  beforeEach(() => {
    asked = [];
    group = { isLeader: true, state: withFour().state };
    const meta = { ...group, introduce: (node: Introduction) => asked.push(node) };
    group = meta;
    registrar = new Registrar(meta as unknown as MetaGroup, { ...founder(1), ...at(11) });
  });

  function proposed(): Introduction[] {
    asked.length = 0;
    for (let i = 0; i < 10; i += 1) registrar.tick();
    return asked;
  }

  it('proposes new facts in the introductions of connected nodes, itself included', () => {
    registrar.introduced({ ...founder(2), node: 2, target: 1, facts: '', speaks: VERSIONS });
    registrar.introduced({
      node: 4,
      incarnation: 'first',
      target: 1,
      facts: '',
      speaks: VERSIONS,
      ...at(44),
    });
    registrar.introduced({ node: 9, incarnation: 'x', target: 1, facts: '', speaks: VERSIONS });
    expect(proposed()).toEqual([
      { ...founder(1), ...at(11) },
      { id: 4, incarnation: 'first', ...at(44) },
    ]);
    registrar.gone(4);
    expect(proposed()).toEqual([{ ...founder(1), ...at(11) }]);
  });

  it('is the only node that proposes them', () => {
    group.isLeader = false;
    expect(proposed()).toEqual([]);
  });
});
