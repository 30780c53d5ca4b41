/** Mutants: which node should hold which partition. */
import type { Mutant } from './mutant.ts';

export const PLACEMENT: readonly Mutant[] = [
  {
    id: 'PL1',
    bug: 'a node that joins takes one replica more than its share',
    law: 'no more moves than a change of the nodes asks for',
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
    bug: 'a snapshot of group 0 forgets the placement: whoever reads it goes by the ring',
    law: 'all nodes that know of a version go by the same placement',
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
    bug: 'a node in the place of another is one that joins and one that leaves',
    law: 'a replacement gets what it replaces, and nothing else moves',
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
    bug: 'when a node leaves nobody looks at labels',
    law: 'no copies share a host where there are enough, or more zones than they must',
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
    bug: 'a zone counts for a host',
    law: 'no copies share a host where there are enough, or more zones than they must',
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
    bug: 'a replacement is thought to stand where the node stood that it replaces',
    law: 'no copies share a host where there are enough, or more zones than they must',
    edits: [
      {
        in: 'placementAfter',
        find: 'is.isLike(was, (node) => (node === joins ? leaves : node))',
        replace: 'true',
      },
    ],
  },
];
