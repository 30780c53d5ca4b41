/** Mutants: snapshots: how they are written, sent, installed and read. */
import type { Mutant } from './mutant.ts';

export const SNAPSHOTS: readonly Mutant[] = [
  {
    id: 'M6',
    bug: 'a snapshot claims to hold less than it does, so its entries are applied again after a restart',
    edits: [{ in: 'applyCommitted', find: 'return last;', replace: 'return entries[0];' }],
  },
  {
    id: 'M12',
    bug: 'a snapshot drops a user',
    edits: [
      {
        in: 'StateReader.#read',
        find: 'const [a, b] = this.#digest.words();',
        replace:
          'for (const keys of state.keyTables) if (keys.size > 1) keys.evictIfIdle(0, Infinity); const [a, b] = this.#digest.words();',
      },
    ],
  },
  {
    id: 'M22',
    bug: 'a snapshot from the leader takes effect before it was checked',
    edits: [{ in: 'advance', find: 'current.target.complete();', replace: ';' }],
  },
  {
    id: 'M22b',
    bug: 'a snapshot from the leader takes effect though a chunk is missing on disk',
    edits: [
      {
        in: 'IncomingSnapshot.isStaged',
        find: 'return this.#staged === this.meta.chunkCount;',
        replace: 'return this.#staged >= this.meta.chunkCount - 1 && this.#staged > 0;',
      },
    ],
  },
  {
    id: 'X12b',
    bug: 'a snapshot forgets the question under a request id',
    edits: [
      {
        in: 'GrantView.writeTo',
        find: 'out.integer(column.isFloat ?',
        replace: "out.integer(column.name === 'cost' ? 1 : column.isFloat ?",
      },
    ],
  },
  {
    id: 'X14',
    bug: 'a snapshot is written from the state of now, not from the state when it began',
    edits: [{ in: 'CapturedKeys.watch', find: 'this.#table.watcher = this;', replace: ';' }],
  },
  {
    id: 'X15',
    bug: 'a restore drops request ids that have expired but still belong to the state',
    edits: [
      {
        in: 'StateReader.#read',
        find: 'const [a, b] = this.#digest.words();',
        replace: 'state.memory.expire(state.changedMillis, Infinity); const [a, b] = this.#digest.words();',
      },
    ],
  },
  {
    id: 'S1',
    bug: 'a snapshot forgets how far the sweep had come',
    law: 'replicas decide the same, and have equal states',
    edits: [{ in: 'StateWriter.#body', find: 'out.integer(this.#sweepSlot);', replace: 'out.integer(0);' }],
  },
  {
    id: 'S2',
    bug: 'a snapshot forgets when its state was created',
    law: 'replicas decide the same, and have equal states',
    edits: [
      { in: 'StateWriter.#body', find: 'out.integer(this.#createdMillis);', replace: 'out.integer(0);' },
    ],
  },
  {
    id: 'S3',
    bug: 'a snapshot forgets that callers send timestamps',
    law: 'replicas decide the same, and have equal states',
    edits: [
      { in: 'StateWriter.#writeTable', find: 'out.byte(table.eventTimed ? 1 : 0);', replace: 'out.byte(0);' },
    ],
  },
  {
    id: 'S4',
    bug: 'request ids that expire while a snapshot is written are missing in it',
    law: 'a snapshot is the state at its index',
    edits: [
      {
        in: 'CapturedMemory.beforeDrop',
        find: 'if (place < this.#next || place >= this.size) return;',
        replace: 'return;',
      },
    ],
  },
  {
    id: 'S5',
    bug: 'a user changes while the snapshot writes it',
    law: 'a snapshot is the state at its index',
    edits: [{ in: 'CapturedKeys.beforeChange', find: 'slot < this.#next', replace: 'slot <= this.#next' }],
  },
  {
    id: 'S6',
    bug: 'installing a snapshot from the leader does not install its configuration',
    law: 'all replicas use the same configuration',
    edits: [{ in: 'handleInstallSnapshot', find: 'state.config = configOfSnapshot(meta);', replace: '' }],
  },
  {
    id: 'S7',
    bug: 'a snapshot replaces a log that already holds its entries',
    law: 'acknowledged entries stay on disk',
    edits: [
      {
        in: 'needsSnapshot',
        find: 'meta.index > log.committed && log.termAt(meta.index) !== meta.term',
        replace: 'meta.index > log.committed',
      },
    ],
    unitTest: {
      file: 'raft/snapshot.test.ts',
      why: 'a leader sends a snapshot only to a follower that lacks what it compacted: for the log to hold the term of the snapshot, the acknowledgements of a whole stream must have been lost, and the replica must not have committed since',
    },
  },
  {
    id: 'S8',
    bug: 'after a restart a replica uses its first configuration',
    law: 'all replicas use the same configuration',
    edits: [
      { in: 'RaftCore.constructor', find: 'if (stored?.snapshot !== undefined)', replace: 'if (false)' },
    ],
  },
  {
    id: 'S9',
    bug: 'a node that installs a snapshot of group 0 does not learn of the nodes in it',
    law: 'partitions move to where they should be',
    edits: [
      {
        in: 'MetaGroup.restore',
        find: 'if (record !== undefined) this.#init.stateChanged(record.state);',
        replace: '',
      },
    ],
  },
  {
    id: 'S10',
    bug: 'chunks of two snapshots with the same index are mixed',
    law: 'a snapshot is the state at its index',
    edits: [
      {
        in: 'isSame',
        find: 'a.term === b.term && a.byteLength === b.byteLength && a.chunkCount === b.chunkCount && a.checksum === b.checksum',
        replace: 'true',
      },
    ],
    unitTest: {
      file: 'raft/driver/incoming-snapshots.test.ts',
      why: 'equal states give equal bytes, and the simulator damages only the first chunk: a mixture equals the snapshot that was begun',
    },
  },
  {
    id: 'S11',
    bug: 'a snapshot stream that is never acknowledged is never given up',
    law: 'a quorum makes progress, all replicas end up equal',
    edits: [
      {
        in: 'OutgoingSnapshots.tick',
        find: 'stream.silentTicks <= this.#options.silentTicksMax',
        replace: 'true',
      },
      { in: 'OutgoingSnapshots.peerLost', find: 'if (stream.to === peer)', replace: 'if (false)' },
    ],
  },
  {
    id: 'S12',
    bug: 'a snapshot keeps the grants of a user but forgets their times',
    law: 'replicas decide the same, and have equal states',
    edits: [
      {
        in: 'StateWriter.#writeTable',
        find: 'isAge ? this.#changedMillis - madeMillis : madeMillis',
        replace: '0',
      },
      {
        in: 'StateWriter.#writeTable',
        find: 'let part = key.meter.write(out, madeMillis, 0);',
        replace: 'let part = key.meter.write(out, this.#changedMillis, 0);',
      },
    ],
  },
  {
    id: 'S13',
    bug: 'a received snapshot is not compared with its checksum',
    law: 'a snapshot is the state at its index',
    edits: [
      {
        in: 'IncomingSnapshot.staged',
        find: '(checksum === undefined || checksum === this.#checksum)',
        replace: 'true',
      },
    ],
    unitTest: {
      file: 'raft/driver/snapshot-streams.test.ts',
      why: 'frames and records have checksums of their own, and a state has its digest: nothing that is damaged on its way gets this far',
    },
  },
  {
    id: 'S14',
    bug: 'a snapshot does not carry the epoch of its configuration',
    law: 'all replicas use the same configuration',
    edits: [{ in: 'encodeMeta', find: 'out.integer(meta.epoch ?? 0);', replace: 'out.integer(0);' }],
  },
  {
    id: 'S15',
    bug: 'learners are not stored with a snapshot',
    law: 'all replicas use the same configuration',
    edits: [
      {
        in: 'encodeOthers',
        find: '[outgoing.length, learners.length, checksum, epoch, ...outgoing, ...learners]',
        replace: '[outgoing.length, 0, checksum, epoch, ...outgoing]',
      },
    ],
  },
  {
    id: 'S16',
    bug: 'a stored snapshot is read with its term as its time',
    features: ['ids'],
    faults: ['crashAll'],
    law: 'group time does not fall behind real time',
    edits: [
      {
        in: 'decodeSnapshotMeta',
        find: 'timeMillis: value.readDoubleLE(at + 16)',
        replace: 'timeMillis: value.readDoubleLE(at + 8)',
      },
    ],
  },
  {
    id: 'S17',
    bug: 'a snapshot of group 0 is taken for a record without checking it',
    law: 'a snapshot is the state at its index',
    edits: [{ in: 'decodeMetaRecord', find: '!isRecord(value)', replace: 'value === undefined' }],
    unitTest: {
      file: 'fuzz/fuzz.test.ts',
      why: 'nodes of the simulator send only records, and damage on the way is found by checksums',
    },
  },
  {
    id: 'S18',
    bug: 'a stored snapshot may have a node id that is no whole number among its learners',
    law: 'all replicas use the same configuration',
    edits: [{ in: 'decodeSnapshotMeta', find: '!areCounts || end', replace: 'end' }],
    unitTest: {
      file: 'fuzz/fuzz.test.ts',
      why: 'no node of the simulator stores such a record, and damage on its disk is found by checksums',
    },
  },
  {
    id: 'S19',
    bug: 'a request for a current snapshot gets one that was already being written',
    law: 'a current snapshot holds everything that was committed before it was asked for',
    edits: [
      {
        in: 'LocalSnapshots.#reportWanted',
        find: 'const satisfied = this.#wanted.filter(({ index }) => index <= stored.index); this.#wanted = this.#wanted.filter(({ index }) => index > stored.index);',
        replace: 'const satisfied = this.#wanted.splice(0);',
      },
    ],
    unitTest: {
      file: 'raft/driver/current-snapshots.test.ts',
      why: 'only backups ask for one, and no world of the simulator makes backups',
    },
  },
  {
    id: 'S20',
    bug: 'a snapshot is never due',
    law: 'logs stay short',
    edits: [{ in: 'LocalSnapshots.isDue', find: 'this.#appliedBytes >= due * patience', replace: 'false' }],
    unitTest: {
      file: 'raft/driver/local-snapshots.test.ts',
      why: 'no law bounds the length of a log: a node may be late with its snapshots while a leader sends it one, or its disk is slow',
    },
  },
  {
    id: 'S21',
    bug: 'a snapshot is due after a fixed number of bytes, however large the last one was',
    law: 'snapshots cost no more than the log',
    edits: [
      {
        in: 'LocalSnapshots.isDue',
        find: 'Math.max(everyBytes, this.#stored?.byteLength ?? 0)',
        replace: 'everyBytes',
      },
    ],
    unitTest: {
      file: 'raft/driver/local-snapshots.test.ts',
      why: 'no law says what a snapshot may cost',
    },
  },
];
