/** Mutants: changes of members, who is admitted, and what becomes of those that are not. */
import type { Mutant } from './mutant.ts';
import { changedLoads } from './seams.ts';

export const MEMBERSHIP: readonly Mutant[] = [
  {
    id: 'M13',
    bug: 'a change of voters takes effect at once, on the leader first and in one step',
    edits: [
      { in: 'changedConfig', find: 'outgoing: votersChange ? config.voters : [],', replace: 'outgoing: [],' },
      { in: 'isSuccessor', find: 'if (after.epoch < before.epoch) return false;', replace: 'return true;' },
      {
        in: 'appendConfig',
        find: 'state.pendingConfigIndex = entry.index;',
        replace: 'state.pendingConfigIndex = entry.index; state.config = config;',
      },
    ],
  },
  {
    id: 'M13b',
    bug: 'during a change the old voters do not count',
    edits: [{ in: 'jointQuorumIndex', find: 'return joint.outgoing.length === 0', replace: 'return true ' }],
  },
  {
    id: 'M19',
    bug: 'the tombstone of a removed replica forgets its term',
    seams: changedLoads((stored) =>
      stored.removed ? { ...stored, hardState: { term: 0, vote: 0, commit: 0 } } : stored,
    ),
    script: 'leave-and-return',
  },
  {
    id: 'M20',
    bug: 'a replica that was removed and came back votes at once',
    edits: [
      {
        in: 'hasForgotten',
        find: 'return state.removedAt > 0 && newestEpoch(state) <= state.removedAt;',
        replace: 'return false;',
      },
    ],
    script: 'sleeper',
  },
  {
    id: 'I1',
    bug: 'another incarnation under a known id is not refused',
    edits: [
      {
        in: 'Admission.trustIn',
        find: "return recorded === incarnation ? 'recorded' : 'refused';",
        replace: "return 'recorded';",
      },
      {
        in: 'Admission.refusalOf',
        find: 'if ((hello.targetIncarnation ?? incarnation) !== incarnation) {',
        replace: 'if (false) {',
      },
    ],
  },
  {
    id: 'I2',
    bug: 'the founders are those that the local file lists',
    edits: [
      {
        in: 'NodeCore.constructor',
        find: 'this.#founders = config.founders.map(',
        replace: 'this.#founders = config.nodes.map(',
      },
    ],
  },
  {
    id: 'I3',
    bug: 'a node that joins takes itself for a founder',
    edits: [
      {
        in: 'NodeCore.constructor',
        find: 'this.#founders = config.founders.map(({ id }) => id);',
        replace: 'this.#founders = [...new Set([...config.founders.map(({ id }) => id), init.nodeId])];',
      },
    ],
  },
  {
    id: 'I4',
    bug: 'a replica is deleted whatever it was offered under, and whatever its log says',
    edits: [
      {
        in: 'ReplicaKeeper.#maybeRemove',
        find: 'if (!isSettled || wasOffered || raft.newestEpoch(group) > version)',
        replace: 'if (!isSettled)',
      },
    ],
  },
  {
    id: 'I5',
    bug: 'a replica is deleted before all partitions have moved',
    edits: [
      {
        in: 'ReplicaKeeper.#maybeRemove',
        find: 'const isSettled = settledVersion === version;',
        replace: 'const isSettled = true;',
      },
    ],
  },
  {
    id: 'I6',
    bug: 'a tombstone is ignored when the node starts',
    edits: [
      {
        in: 'NodeCore.#loadPartition',
        find: 'const stored = await store.load(group);',
        replace: 'let stored = await store.load(group); if (stored?.removed) stored = undefined;',
      },
    ],
  },
];
