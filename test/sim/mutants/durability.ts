/** Mutants: what is said to be on disk, and what a new process finds there. */
import type { Mutant } from './mutant.ts';
import { changedLoads, changedWrites, earlyInstalls, lyingStore } from './seams.ts';

export const DURABILITY: readonly Mutant[] = [
  { id: 'M1', bug: 'writes are not synced: they reach the disk a second later', seams: lyingStore(1_000) },
  { id: 'M2', bug: 'acknowledged before the own sync', seams: lyingStore(0) },
  { id: 'M2b', bug: 'a snapshot is taken for installed before it is on disk', seams: earlyInstalls() },
  {
    id: 'M5',
    bug: 'the vote is not stored',
    seams: changedWrites(({ hardState, ...rest }) =>
      hardState === undefined ? rest : { ...rest, hardState: { ...hardState, vote: 0 } },
    ),
  },
  {
    id: 'M5b',
    bug: 'the vote is not read back',
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
    bug: 'a new process drops what it does not know to be committed',
    seams: changedLoads(({ entries, ...rest }) => ({
      ...rest,
      entries: entries.filter(({ index }) => index <= rest.hardState.commit),
    })),
  },
  {
    id: 'M8',
    bug: 'a storage error is swallowed',
    edits: [
      {
        in: 'GroupCommit.#written',
        find: 'this.#init.failed(error); return; } if (this.#isStalled)',
        replace: '} if (this.#isStalled)',
      },
    ],
  },
  { id: 'M17', bug: 'a lost directory is made anew', seams: { recreatesDirectories: true } },
  {
    id: 'M21',
    bug: 'what waits for the disk leaves when a part of it is there',
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
    bug: 'a write of a part says that more is committed',
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
    bug: 'what is deleted of a removed replica is the log of the one that came back',
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
    bug: 'what was written is stable, whatever the log holds now',
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
    bug: 'a node on an older copy of its directory does not mind',
    edits: [{ in: 'step', find: 'checkAcknowledged(state, message);', replace: ';' }],
  },
  {
    id: 'X11',
    bug: 'what is damaged on disk is not noticed at start',
    faults: ['flipBits', 'crashAll'],
    edits: [{ in: 'checkRecord', find: 'if (found !== stored) {', replace: 'if (false) {' }],
  },
  {
    id: 'D1',
    bug: 'votes leave before they are on disk',
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
    bug: 'a vote in a term that is on disk already is not written',
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
    bug: 'what was written counts as on disk though a snapshot that came meanwhile wipes it',
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
      why: 'a write must end between a snapshot that conflicts with it and its installation, and its entries be acknowledged then: a replica acknowledges only what its log holds, which is the snapshot by then',
    },
  },
  {
    id: 'D4',
    bug: 'deleting what was compacted takes the first entry behind it',
    law: 'what is on disk stays there',
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
    bug: 'what is left of an earlier snapshot of the same index is deleted under the new one',
    law: 'a snapshot in effect can be read',
    edits: [
      { in: 'LevelGroup.applyStage', find: 'this.garbage.claimChunk(index, place.chunk);', replace: '' },
    ],
  },
  {
    id: 'D6',
    bug: 'after a restart it is forgotten that a replica was removed before',
    law: 'who has forgotten does not vote',
    edits: [{ in: 'LevelGroup.restore', find: 'state.removedAt = record.removedAt;', replace: '' }],
    script: 'node-oversleeps',
  },
  {
    id: 'D7',
    bug: 'after a restart it is forgotten under which placement a replica was offered',
    law: 'no replica is deleted that was offered',
    edits: [{ in: 'LevelGroup.restore', find: 'state.placement = record.placement;', replace: '' }],
  },
  {
    id: 'X18',
    bug: 'what LevelDB drops of a torn log is not written down before, and is damage at the next start if this one dies',
    law: 'a crash alone never makes a database unfit',
    edits: [{ in: 'checkDirectory', find: 'await writeFloor(directory, adjusted);', replace: '' }],
    unitTest: {
      file: 'storage/torn-ends.test.ts',
      why: 'the store of a simulated node lies on a database of the simulator: there are no files of LevelDB',
    },
  },
  {
    id: 'D18',
    bug: 'a table of which only dead bytes are damaged passes for sound, until LevelDB compacts them',
    law: 'damage is found at a start',
    edits: [{ in: 'checkTables', find: 'if (at !== undefined)', replace: 'if (at === -1)' }],
    unitTest: {
      file: 'storage/damage.test.ts',
      why: 'the store of a simulated node lies on a database of the simulator: there are no files of LevelDB',
    },
  },
];
