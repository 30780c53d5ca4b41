/** Mutants: what a node claims to have on disk, and what its next process finds there. */
import type { Mutant } from './mutant.ts';
import { changedLoads, changedWrites, earlyInstalls, lyingStore } from './seams.ts';

export const DURABILITY: readonly Mutant[] = [
  { id: 'M1', bug: 'writes are not synced: they reach the disk a second later', seams: lyingStore(1_000) },
  { id: 'M2', bug: 'a follower acknowledges entries before its own sync', seams: lyingStore(0) },
  { id: 'M2b', bug: 'a snapshot counts as installed before it is on disk', seams: earlyInstalls() },
  {
    id: 'M5',
    bug: 'votes are not stored',
    seams: changedWrites(({ hardState, ...rest }) =>
      hardState === undefined ? rest : { ...rest, hardState: { ...hardState, vote: 0 } },
    ),
  },
  {
    id: 'M5b',
    bug: 'the stored vote is not read at start',
    seams: changedLoads(({ hardState, ...rest }) => ({ ...rest, hardState: { ...hardState, vote: 0 } })),
  },
  {
    id: 'M6b',
    bug: 'the log is compacted before the snapshot that covers it is on disk',
    edits: [
      {
        in: 'GroupCommit.#collect',
        find: '...(stage !== undefined && { stage }),',
        replace:
          '...(stage !== undefined && { stage, compactTo: group.core.compactionPoint(stage.index, 0) }),',
      },
    ],
  },
  {
    id: 'M6c',
    bug: 'a new process drops entries that it does not know to be committed',
    seams: changedLoads(({ entries, ...rest }) => ({
      ...rest,
      entries: entries.filter(({ index }) => index <= rest.hardState.commit),
    })),
  },
  {
    id: 'M8',
    bug: 'storage errors are ignored',
    edits: [
      {
        in: 'GroupCommit.#written',
        find: 'this.#init.failed(error); return; } if (this.#isStalled)',
        replace: '} if (this.#isStalled)',
      },
    ],
  },
  { id: 'M17', bug: 'a node that lost its directory makes a new one', seams: { recreatesDirectories: true } },
  {
    id: 'M21',
    bug: 'messages that wait for the disk are sent when only a part of the write is on disk',
    edits: [
      {
        in: 'nextWrite',
        find: 'afterSync: isPartial ? [] : afterSync.splice(0),',
        replace: 'afterSync: afterSync.splice(0),',
      },
    ],
  },
  {
    id: 'M21b',
    bug: 'a partial write stores a commit index beyond the entries that it wrote',
    edits: [
      {
        in: 'nextWrite',
        find: 'commit: Math.min(log.committed, lastWritten)',
        replace: 'commit: log.committed',
      },
    ],
  },
  {
    id: 'M23',
    bug: 'cleaning up after a removed replica deletes the log of the replica that came back',
    edits: [
      {
        in: 'LevelGroup.deadIndex',
        find: 'return this.state.isRemoved ? this.garbage.newestKey : this.state.log.baseIndex;',
        replace: 'return this.state.removedAt > 0 ? this.garbage.newestKey : this.state.log.baseIndex;',
      },
    ],
    script: 'node-oversleeps',
  },
  {
    id: 'X5',
    bug: 'acknowledgements do not wait for the disk',
    edits: [
      {
        in: 'waitsForDisk',
        find: "case 'appendResponse': return true;",
        replace: "return true; case 'appendResponse': return false;",
      },
    ],
  },
  {
    id: 'X6',
    bug: 'written entries count as stable, even if the log holds other entries now',
    world: 'short-reigns',
    edits: [
      {
        in: 'RaftLog.stableTo',
        find: 'entry.index > this.#base.index && this.termAt(entry.index) === entry.term) {',
        replace: 'entry.index > this.#base.index && this.termAt(entry.index) !== undefined) {',
      },
    ],
  },
  {
    id: 'X10',
    bug: 'a node that runs on an older copy of its directory does not notice',
    edits: [{ in: 'step', find: 'checkAcknowledged(state, message);', replace: ';' }],
  },
  {
    id: 'X11',
    bug: 'damage on disk is not noticed at start',
    faults: ['flipBits', 'crashAll'],
    edits: [{ in: 'checkRecord', find: 'if (found !== stored) {', replace: 'if (false) {' }],
  },
  {
    id: 'D1',
    bug: 'votes are sent before they are on disk',
    law: 'nothing is promised before it is on disk',
    edits: [
      {
        in: 'waitsForDisk',
        find: "case 'voteResponse': case 'appendResponse': return true;",
        replace: "case 'appendResponse': return true; case 'voteResponse': return false;",
      },
    ],
  },
  {
    id: 'D2',
    bug: 'a vote is not written if its term is on disk already',
    law: 'nothing is promised before it is on disk',
    edits: [
      {
        in: 'nextWrite',
        find: 'term !== written.term || vote !== written.vote',
        replace: 'term !== written.term',
      },
    ],
  },
  {
    id: 'D3',
    bug: 'entries count as on disk though a snapshot that came meanwhile replaces them',
    law: 'nothing is promised before it is on disk',
    edits: [
      {
        in: 'writeDone',
        find: 'if (state.pendingInstall === undefined) state.log.stableTo(ready.entries);',
        replace: 'state.log.stableTo(ready.entries);',
      },
    ],
    unitTest: {
      file: 'raft/snapshot.test.ts',
      why: 'a write must end between the arrival of a conflicting snapshot and its installation, and its entries be acknowledged then: a replica acknowledges only what its log holds, which is the snapshot by then',
    },
  },
  {
    id: 'D4',
    bug: 'deleting compacted entries also deletes the first entry after them',
    law: 'data on disk stays there',
    edits: [
      {
        in: 'GroupGarbage.take',
        find: 'remove(entryKey(group, this.oldestKey));',
        replace: 'remove(entryKey(group, this.oldestKey + 1));',
      },
    ],
  },
  {
    id: 'D5',
    bug: 'deleting an earlier snapshot deletes chunks of a new one with the same index',
    law: 'a snapshot in effect can be read',
    edits: [
      { in: 'LevelGroup.applyStage', find: 'this.garbage.claimChunk(index, place.chunk);', replace: '' },
    ],
  },
  {
    id: 'D6',
    bug: 'after a restart a node forgets that its replica was removed before',
    law: 'a replica that forgot its promises does not vote',
    edits: [{ in: 'LevelGroup.restore', find: 'state.removedAt = record.removedAt;', replace: '' }],
    script: 'node-oversleeps',
  },
  {
    id: 'D7',
    bug: 'after a restart a node forgets under which placement its replica was offered',
    law: 'no offered replica is deleted',
    edits: [{ in: 'LevelGroup.restore', find: 'state.placement = record.placement;', replace: '' }],
  },
  {
    id: 'X18',
    bug: 'what LevelDB will drop of a torn log is not recorded first, so a crash during that start is taken for damage at the next',
    law: 'a crash alone never makes a database unfit',
    edits: [{ in: 'checkDirectory', find: 'await writeFloor(directory, adjusted);', replace: '' }],
    unitTest: {
      file: 'storage/torn-ends.test.ts',
      why: 'a simulated node keeps its data in a simulated database: there are no files of LevelDB',
    },
  },
  {
    id: 'D18',
    bug: 'damage in unused bytes of a table is not found until LevelDB compacts the table',
    law: 'damage is found at start',
    edits: [{ in: 'checkTables', find: 'if (at !== undefined)', replace: 'if (at === -1)' }],
    unitTest: {
      file: 'storage/damage.test.ts',
      why: 'a simulated node keeps its data in a simulated database: there are no files of LevelDB',
    },
  },
];
