/** The text form of a placement: small, and decoded to the same placement or refused. */
import { FIRST_RULES } from './first-rules.ts';
import { describe, expect, it } from 'vitest';
import { ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import { decodePlacement, encodePlacement } from '../../src/meta/placement-text.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { NODES_MAX, PARTITIONS_MAX } from '../../src/config/config.ts';
import { loadHash32 } from '../../src/partition/hash.ts';
import { foundingPlacement } from '../../src/partition/placement.ts';

const hash = await loadHash32();

describe('the text of a placement', () => {
  it('has a letter for each replica, up to the maximum of nodes and partitions', () => {
    // Ids have up to 31 bits, and gaps between them.
    const nodes = Array.from({ length: NODES_MAX }, (_, i) => 3 + i * 30_000_000);
    const table = foundingPlacement(nodes, PARTITIONS_MAX, 7, hash);
    const text = encodePlacement(table, nodes);
    expect(Buffer.byteLength(JSON.stringify(text))).toBe(PARTITIONS_MAX * 7 + 2);
    expect(decodePlacement(text, nodes, 7)).toEqual(table);
  });

  it.each([
    ['AB', [7], 'a placement of 1 nodes must not name B'],
    ['A!', [7, 8], 'a placement of 2 nodes must not name !'],
    ['ABA', [7, 8], 'a placement of 3 replicas must have 2 in each row'],
  ])('is refused if it is malformed: %s of nodes %j', (text, nodes, words) => {
    expect(() => decodePlacement(text, nodes, 2)).toThrow(words);
  });

  it('names only nodes of the list', () => {
    expect(() => encodePlacement([[7, 9]], [7, 8])).toThrow('node 9 must be among the first 64 of the list');
  });
});

describe('the placement of a cluster', () => {
  it('rejects unknown partitions', () => {
    const placement = new ClusterPlacement([1], 4, 1, hash);
    expect(() => placement.replicasOf(4)).toThrow('partition 4 is not in 0..3');
    expect(() => placement.replicasOf(-1)).toThrow(RangeError);
  });

  it('is the one of group 0, with the previous one while groups move, and at first the ring of the founders', () => {
    const placement = new ClusterPlacement([1, 2, 3], 2, 1, hash);
    const rows = (): unknown => [0, 1].map((partition) => placement.replicasOf(partition));
    expect(rows()).toEqual(foundingPlacement([1, 2, 3], 2, 1, hash));
    const state = {
      version: 3,
      settledVersion: 2,
      nodes: [{ id: 3 }, { id: 5 }],
      placement: 'BA',
      settledNodes: [1, 3],
      settledPlacement: 'AA',
      rules: FIRST_RULES,
      leaving: [{ id: 1 }],
      retired: [1],
      clusterVersion: 1,
    } satisfies MetaState;
    placement.update(state);
    expect(rows()).toEqual([[5], [3]]);
    expect([placement.isSettled, placement.candidatesOf(0)]).toEqual([false, [5, 1, 3]]);
    placement.update({
      ...state,
      settledVersion: 3,
      settledNodes: [3, 5],
      settledPlacement: 'BA',
      rules: FIRST_RULES,
      leaving: [],
    });
    expect([placement.isSettled, placement.candidatesOf(0)]).toEqual([true, [5]]);
    // The same letters mean other nodes in another list.
    placement.update({ ...state, version: 4, nodes: [{ id: 3 }, { id: 9 }] });
    expect(rows()).toEqual([[9], [3]]);
  });
});
