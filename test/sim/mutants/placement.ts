/** Mutants: which nodes hold which partition. */
import type { Mutant } from './mutant.ts';

export const PLACEMENT: readonly Mutant[] = [
  {
    id: 'PL1',
    bug: 'a node that joins takes one replica more than it should',
    law: 'a change of the nodes causes no more moves than needed',
    edits: [
      {
        in: 'placeCopies',
        find: 'copies.even();',
        replace: `copies.even();
        const joins = copies.rows.flat().find((node) => init.mayReceive(node)) ?? NOWHERE;
        const isWhole = (row: readonly number[], i: number): boolean =>
          row.every((node) => node !== joins && init.home[i]?.includes(node) === true);
        const row = joins === NOWHERE ? undefined : copies.rows.find(isWhole);
        if (row !== undefined) row[row.length - 1] = joins;`,
      },
    ],
  },
  {
    id: 'PL2',
    bug: 'a snapshot of group 0 forgets the placement, so a node that reads it computes one from the ring',
    law: 'all nodes that know a version use the same placement',
    edits: [
      {
        in: 'MetaGroup.restore',
        find: 'record = decodeMetaRecord(chunks);',
        replace: `record = decodeMetaRecord(chunks);
        if (record !== undefined) {
          const { nodes, clusterVersion } = record.state;
          const create = { type: 'create', nodes, clusterVersion, ...this.#init.fixed };
          const { placement } = applyMetaCommand(undefined, create, this.#init.fixed.hash).record.state;
          record = { ...record, state: { ...record.state, placement } };
        }`,
      },
    ],
  },
  {
    id: 'PL3',
    bug: 'a replacement is handled as one node that joins and one that leaves',
    law: 'a replacement gets the replicas of the node it replaces, and nothing else moves',
    edits: [
      {
        in: 'placementAfter',
        find: 'is.isLike(was, (node) => (node === joins ? leaves : node))',
        replace: 'false',
      },
    ],
  },
  {
    id: 'PL4',
    bug: 'when a node leaves, labels are ignored',
    law: 'copies share no host where there are enough hosts, and no more zones than they must',
    edits: [
      {
        in: 'placementAfter',
        find: 'new Topology(after)',
        replace: 'new Topology(after.length < before.length ? after.map(({ id }) => ({ id })) : after)',
      },
    ],
  },
  {
    id: 'PL5',
    bug: 'nodes in one zone count as nodes on one host',
    law: 'copies share no host where there are enough hosts, and no more zones than they must',
    edits: [
      {
        in: 'Topology.closeness',
        find: '(this.#sharesHost(a, b) ? HOST_SHARED : 0)',
        replace: '(this.#sharesZone(a, b) ? HOST_SHARED : 0)',
      },
    ],
  },
  {
    id: 'PL6',
    bug: 'a replacement is placed as if it had the labels of the node that it replaces',
    law: 'copies share no host where there are enough hosts, and no more zones than they must',
    edits: [
      {
        in: 'placementAfter',
        find: 'is.isLike(was, (node) => (node === joins ? leaves : node))',
        replace: 'true',
      },
    ],
  },
];
