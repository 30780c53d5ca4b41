/**
 * Known bugs of other systems, put into this one on purpose: the simulator is worth what it finds of them. A mutant
 * is either one edit of a compiled module as it is loaded, or something put between a node and its surroundings.
 * Nothing of this is in the product. The numbers are those of the project's catalogue of faults.
 */
import type { LogStore, StoredGroup } from '../../raft/store.ts';
import type { Seams } from './node-world.ts';

export interface SourceEdit {
  /** The compiled module, e.g. `raft/log.js`. */
  readonly module: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly id: string;
  readonly bug: string;
  readonly edit?: SourceEdit;
  /** More of them, where one place alone would trip over an assertion in the next. */
  readonly also?: readonly SourceEdit[];
  readonly seams?: Seams;
  /** The script that shows it, with a crash at some boundary or none; no seed does. */
  readonly script?: string;
}

/** Says a write is done, and does it this much later. */
function lyingStore(lateMillis: number): Seams {
  return {
    wrapStore(store, after): LogStore {
      const queue: Parameters<LogStore['write']>[0][] = [];
      let isWriting = false;
      const next = (): void => {
        const writes = isWriting ? undefined : queue.shift();
        if (writes === undefined) return;
        isWriting = true;
        store.write(writes, () => {
          isWriting = false;
          after(lateMillis, next);
        });
      };
      return {
        load: (group) => store.load(group),
        write(writes, done) {
          queue.push(writes);
          next();
          after(0, () => done());
        },
        get hasGarbage() {
          return store.hasGarbage;
        },
        readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
        close: () => store.close(),
      };
    },
  };
}

/** Says that writes with a snapshot to install are done before they are. */
function earlyInstalls(): Seams {
  return {
    wrapStore(store, after): LogStore {
      let isWriting = false;
      let waiting: (() => void) | undefined;
      return {
        load: (group) => store.load(group),
        write(writes, done) {
          const isEarly = writes.some(({ install }) => install !== undefined);
          const write = (): void => {
            isWriting = true;
            store.write(writes, (error) => {
              isWriting = false;
              if (!isEarly) done(error);
              const next = waiting;
              waiting = undefined;
              next?.();
            });
            if (isEarly) after(0, () => done());
          };
          if (isWriting) waiting = write;
          else write();
        },
        get hasGarbage() {
          return store.hasGarbage;
        },
        readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
        close: () => store.close(),
      };
    },
  };
}

/** Changes what a new process finds. */
function changedLoads(change: (stored: StoredGroup) => StoredGroup): Seams {
  return {
    wrapStore: (store): LogStore => ({
      load: async (group) => {
        const stored = await store.load(group);
        return stored === undefined ? undefined : change(stored);
      },
      write: (writes, done) => store.write(writes, done),
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
      close: () => store.close(),
    }),
  };
}

/** Changes what is written. */
function changedWrites(change: (write: Parameters<LogStore['write']>[0][number]) => typeof write): Seams {
  return {
    wrapStore: (store): LogStore => ({
      load: (group) => store.load(group),
      write: (writes, done) => store.write(writes.map(change), done),
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
      close: () => store.close(),
    }),
  };
}

export const MUTANTS: readonly Mutant[] = [
  { id: 'M1', bug: 'writes are not synced: they reach the disk a second later', seams: lyingStore(1_000) },
  { id: 'M2', bug: 'acknowledged before the own sync', seams: lyingStore(0) },
  {
    id: 'M3',
    bug: 'entries of earlier terms are committed by counting',
    edit: {
      module: 'raft/leader.js',
      find: '|| state.log.termAt(index) !== state.term)',
      replace: ')',
    },
  },
  {
    id: 'M4',
    bug: 'a new leader commits no no-op',
    edit: {
      module: 'raft/leader.js',
      find: 'state.becomeLeaderRole();\n    appendNoop(state);',
      replace: 'state.becomeLeaderRole();',
    },
  },
  {
    id: 'M5',
    bug: 'the vote is not stored',
    seams: changedWrites(({ hardState, ...rest }) =>
      hardState === undefined ? rest : { ...rest, hardState: { ...hardState, vote: 0 } },
    ),
  },
  {
    id: 'M6',
    bug: 'a snapshot says less than it holds: its entries are applied again after a restart',
    edit: {
      module: 'raft/apply.js',
      find: 'return last;',
      replace: 'return entries[0];',
    },
  },
  {
    id: 'M6b',
    bug: 'the log is compacted before the snapshot that covers it is on disk',
    edit: {
      module: 'raft/group-commit.js',
      find: '...(stage !== undefined && { stage }),',
      replace:
        '...(stage !== undefined && { stage, compactTo: group.core.compactionPoint(stage.index, 0) }),',
    },
  },
  {
    id: 'M7',
    bug: 'a late, short append truncates although it matches',
    edit: {
      module: 'raft/log.js',
      find: 'if (firstNew === -1)\n            return lastNew;',
      replace:
        'if (firstNew === -1) { if (lastNew < this.lastIndex && lastNew >= this.committed) this.#truncateFrom(lastNew + 1); return lastNew; }',
    },
  },
  {
    id: 'M8',
    bug: 'a storage error is swallowed',
    edit: {
      module: 'raft/group-commit.js',
      find: 'this.#init.failed(error);\n            return;\n        }\n        if (this.#isStalled)',
      replace: '}\n        if (this.#isStalled)',
    },
  },
  {
    id: 'M9',
    bug: 'granted before the entry is committed',
    edit: {
      module: 'src/partition/partition.js',
      find: 'this.#inflight.set(entry.index, { term: entry.term, sinceMillis, waiters });',
      replace: `for (const waiter of waiters) waiter.done(answerOf({ allowed: true, ruleId: waiter.request.ruleId ?? 'default',
          limit: 1, windowMillis: 1, remaining: 0, retryAfterMillis: 0, resetMillis: 0,
          decided: { term: entry.term, index: entry.index, timeMillis: entry.timeMillis } }));
        return;`,
    },
  },
  {
    id: 'M10',
    bug: 'the leader stamps with its wall clock',
    edit: {
      module: 'src/limiter/group-clock.js',
      find: 'return Math.floor(this.#anchor.timeMillis + Math.max(0, elapsed));',
      replace: 'return Math.floor(this.#originMillis());',
    },
  },
  {
    id: 'M10b',
    bug: 'each replica applies at its own wall clock',
    edit: {
      module: 'src/partition/partition.js',
      find: 'this.#machine.apply(command, entry, (i, decision)',
      replace:
        'this.#machine.apply(command, { ...entry, timeMillis: Math.max(this.#machine.applied.timeMillis, Math.floor(this.#init.wallMillis())) }, (i, decision)',
    },
  },
  {
    id: 'M11',
    bug: 'a grant leaves its window a millisecond early',
    edit: {
      module: 'src/limiter/meters/log-runs.js',
      find: 'const first = this.firstLive(t - windowMillis);\n        if (first === this.count)\n            return 0;\n        return (',
      replace:
        'const first = this.firstLive(t - windowMillis + 1);\n        if (first === this.count)\n            return 0;\n        return (',
    },
  },
  {
    id: 'M12',
    bug: 'a snapshot drops a user',
    edit: {
      module: 'src/limiter/state/state-reader.js',
      find: 'const [a, b] = this.#digest.words();',
      replace:
        'for (const keys of state.keyTables) if (keys.size > 1) keys.evictIfIdle(0, Infinity); const [a, b] = this.#digest.words();',
    },
  },
  {
    id: 'M13',
    bug: 'a change of voters takes effect at once, on the leader first and in one step',
    edit: {
      module: 'raft/membership.js',
      find: 'outgoing: votersChange ? config.voters : [],',
      replace: 'outgoing: [],',
    },
    also: [
      {
        module: 'raft/membership.js',
        find: 'if (after.epoch < before.epoch)\n        return false;',
        replace: 'return true;',
      },
      {
        module: 'raft/reconfigure.js',
        find: 'state.pendingConfigIndex = entry.index;',
        replace: 'state.pendingConfigIndex = entry.index; state.config = config;',
      },
    ],
  },
  {
    id: 'M13b',
    bug: 'during a change the old voters do not count',
    edit: {
      module: 'raft/quorum.js',
      find: 'return joint.outgoing.length === 0\n',
      replace: 'return true\n',
    },
  },
  {
    id: 'M14',
    bug: 'an unknown outcome is reported as certainly nothing',
    edit: {
      module: 'src/router/forwarder.js',
      find: "reason: 'unknown_outcome', proposed: true",
      replace: "reason: 'unknown_outcome', proposed: false",
    },
  },
  {
    id: 'M14b',
    bug: 'a deadline is reported as certainly nothing',
    edit: {
      module: 'src/router/router.js',
      find: 'proposed: open.maybeProposed || isAsking',
      replace: 'proposed: false',
    },
  },
  {
    id: 'M15',
    bug: 'a remembered request id is not found again',
    edit: {
      module: 'src/limiter/state/request-memory.js',
      find: 'return id !== NONE && this.view(id).expiresMillis >= nowMillis ? id : NONE;',
      replace: 'return NONE;',
    },
  },
  {
    id: 'M16',
    bug: 'frames carry no checksum',
    edit: {
      module: 'src/transport/frame.js',
      find: "import { crc32 } from 'node:zlib';",
      replace: 'const crc32 = () => 0;',
    },
  },
  { id: 'M2b', bug: 'a snapshot is taken for installed before it is on disk', seams: earlyInstalls() },
  {
    id: 'M5b',
    bug: 'the vote is not read back',
    seams: changedLoads(({ hardState, ...rest }) => ({ ...rest, hardState: { ...hardState, vote: 0 } })),
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
    edit: {
      module: 'raft/reconfigure.js',
      find: 'return state.removedAt > 0 && newestEpoch(state) <= state.removedAt;',
      replace: 'return false;',
    },
    script: 'sleeper',
  },
  {
    id: 'M21',
    bug: 'what waits for the disk leaves when a part of it is there',
    edit: {
      module: 'raft/core.js',
      find: 'afterSync: isPartial ? [] : afterSync.splice(0),',
      replace: 'afterSync: afterSync.splice(0),',
    },
  },
  {
    id: 'M21b',
    bug: 'a write of a part says that more is committed',
    edit: {
      module: 'raft/core.js',
      find: 'commit: Math.min(log.committed, lastWritten)',
      replace: 'commit: log.committed',
    },
  },
  {
    id: 'M22',
    bug: 'a snapshot of the leader takes effect before it was checked',
    edit: {
      module: 'raft/snapshot-restores.js',
      find: 'current.target.complete();',
      replace: ';',
    },
  },
  {
    id: 'M22b',
    bug: 'a snapshot of the leader takes effect with a chunk missing on disk',
    edit: {
      module: 'raft/incoming-snapshots.js',
      find: 'return this.#staged === this.meta.chunkCount;',
      replace: 'return this.#staged >= this.meta.chunkCount - 1 && this.#staged > 0;',
    },
  },
  {
    id: 'M23',
    bug: 'what is deleted of a removed replica is the log of the one that came back',
    edit: {
      module: 'storage/level-group.js',
      find: 'return this.state.isRemoved ? this.garbage.newestKey : this.state.log.baseIndex;',
      replace: 'return this.state.removedAt > 0 ? this.garbage.newestKey : this.state.log.baseIndex;',
    },
    script: 'leave-and-return',
  },
  { id: 'M17', bug: 'a lost directory is made anew', seams: { recreatesDirectories: true } },
  {
    id: 'M18',
    bug: 'a leader without a quorum never steps down',
    edit: {
      module: 'raft/leader.js',
      find: 'if (!quorumIsActive(state) ||',
      replace: 'quorumIsActive(state); if (',
    },
  },
  {
    id: 'X1',
    bug: 'votes go to logs that are behind',
    edit: {
      module: 'raft/log.js',
      find: 'return lastTerm > own.term || (lastTerm === own.term && lastIndex >= own.index);',
      replace: 'return lastIndex >= own.index;',
    },
  },
  {
    id: 'X2',
    bug: 'a heartbeat commits what the peer may not hold',
    edit: {
      module: 'raft/leader.js',
      find: 'commit: Math.min(progress.match, state.log.committed)',
      replace: 'commit: state.log.committed',
    },
  },
  {
    id: 'X3',
    bug: 'group time: the larger estimate always wins',
    edit: {
      module: 'src/limiter/group-clock.js',
      find: 'anchor(_term, timeMillis) {',
      replace: 'anchor(_term, timeMillis) { if (this.#anchor && this.nowMillis() >= timeMillis) return;',
    },
  },
  {
    id: 'X3b',
    bug: 'group time: within a term the larger estimate wins, so drift adds up',
    edit: {
      module: 'src/limiter/group-clock.js',
      find: 'anchor(_term, timeMillis) {',
      replace:
        'anchor(_term, timeMillis) { if (this.term === _term && this.nowMillis() >= timeMillis) return; this.term = _term;',
    },
  },
  {
    id: 'X4',
    bug: 'the vote is forgotten within a term',
    edit: {
      module: 'raft/core-state.js',
      find: 'if (term !== this.term) {',
      replace: '{',
    },
  },
  {
    id: 'X5',
    bug: 'acknowledgements do not wait for the disk',
    edit: {
      module: 'raft/core-state.js',
      find: "case 'appendResponse':\n            return true;",
      replace: "return true; case 'appendResponse': return false;",
    },
  },
  {
    id: 'X6',
    bug: 'what was written is stable, whatever the log holds now',
    edit: {
      module: 'raft/log.js',
      find: 'entry.index > this.#base.index && this.termAt(entry.index) === entry.term) {',
      replace: 'entry.index > this.#base.index && this.termAt(entry.index) !== undefined) {',
    },
  },
  {
    id: 'X7',
    bug: 'denials are decided at a time that lags behind',
    edit: {
      module: 'src/limiter/state-machine.js',
      find: 'if (!judgement.fits)\n            return',
      replace:
        'if (!judgement.fits || judgement.live + judgement.cost === keys.rule.limit)\n            return',
    },
  },
  {
    id: 'X10',
    bug: 'a node on an older copy of its directory does not mind',
    edit: { module: 'raft/step.js', find: 'checkAcknowledged(state, message);', replace: ';' },
  },
  {
    id: 'I1',
    bug: 'another incarnation under a known id is not refused',
    edit: {
      module: 'src/meta/admission.js',
      find: "return recorded === incarnation ? 'recorded' : 'refused';",
      replace: "return 'recorded';",
    },
    also: [
      {
        module: 'src/meta/admission.js',
        find: 'if ((hello.targetIncarnation ?? incarnation) !== incarnation) {',
        replace: 'if (false) {',
      },
    ],
  },
  {
    id: 'I2',
    bug: 'the founders are those that the local file lists',
    edit: {
      module: 'src/node-core.js',
      find: 'this.#founders = config.founders.map(',
      replace: 'this.#founders = config.nodes.map(',
    },
  },
  {
    id: 'I3',
    bug: 'a node that joins takes itself for a founder',
    edit: {
      module: 'src/node-core.js',
      find: 'this.#founders = config.founders.map(({ id }) => id);',
      replace: 'this.#founders = [...new Set([...config.founders.map(({ id }) => id), init.nodeId])];',
    },
  },
  {
    id: 'I4',
    bug: 'a replica is deleted whatever it was offered under, and whatever its log says',
    edit: {
      module: 'src/meta/replica-keeper.js',
      find: 'if (!isSettled || wasOffered || raft.newestEpoch(group) > version)',
      replace: 'if (!isSettled)',
    },
  },
  {
    id: 'I5',
    bug: 'a replica is deleted before all partitions have moved',
    edit: {
      module: 'src/meta/replica-keeper.js',
      find: 'const isSettled = settledVersion === version;',
      replace: 'const isSettled = true;',
    },
  },
  {
    id: 'I6',
    bug: 'a tombstone is ignored when the node starts',
    edit: {
      module: 'src/node-core.js',
      find: 'const stored = await store.load(group);',
      replace: 'let stored = await store.load(group); if (stored?.removed) stored = undefined;',
    },
  },
  {
    id: 'X11',
    bug: 'what is damaged on disk is not noticed at start',
    edit: { module: 'storage/codec.js', find: 'if (found !== stored) {', replace: 'if (false) {' },
  },
  {
    id: 'X9',
    bug: 'a router asks a silent node for ever',
    edit: {
      module: 'src/router/failure-detector.js',
      find: 'known.isSuspected = true;',
      replace: 'continue;',
    },
  },
  {
    id: 'R1',
    bug: 'the age of a request at the door does not count',
    edit: {
      module: 'src/router/router.js',
      find: 'this.#init.doorMillis() +',
      replace: 'this.#init.monotonicMillis() +',
    },
  },
  {
    id: 'R2',
    bug: 'late answers pass',
    edit: {
      module: 'src/router/router.js',
      find: 'if (this.#init.monotonicMillis() > open.deadlineMillis + LATE_ANSWER_MILLIS_MAX) {',
      replace: 'if (false) {',
    },
  },
  {
    id: 'R10',
    bug: 'a denial is final though another node may still grant the request',
    edit: {
      module: 'src/router/router.js',
      find: 'if (open.astray > 0 || open.isLost) {',
      replace: 'if (false) {',
    },
  },
  {
    id: 'R3',
    bug: 'nobody believes a hint',
    edit: {
      module: 'src/router/router.js',
      find: 'if (this.#queue(partition).search.told(answer.leader, answer.term))',
      replace: 'if (false)',
    },
  },
  {
    id: 'R11',
    bug: 'a leader is not found by what it refuses for want of room',
    edit: {
      module: 'src/router/router.js',
      find: "else if (isProbe && meaningOf(answer) === 'leads')",
      replace: 'else if (false)',
    },
  },
  {
    id: 'R4',
    bug: 'the search for a leader begins with the same candidate again and again',
    edit: {
      module: 'src/router/leader-search.js',
      find: 'if (this.#asked.has(node))\n                continue;\n            this.#turn = turn + 1;',
      replace: 'this.#turn = 0;',
    },
  },
  {
    id: 'R5',
    bug: 'whoever does not lead passes a request on, however often it was passed on',
    edit: {
      module: 'src/router/forwarder.js',
      find: "const isTheirs = mayRelay && answer.kind === 'notLeader' && answer.leader === relayTo;",
      replace: "const isTheirs = answer.kind === 'notLeader' && answer.leader !== 0;",
    },
    also: [
      {
        module: 'src/router/forwarder.js',
        find: 'if (!isTheirs || !this.isReachable(relayTo))',
        replace: 'if (!isTheirs || !this.isReachable(answer.leader))',
      },
      {
        module: 'src/router/forwarder.js',
        find: 'this.forward({ to: relayTo,',
        replace: 'this.forward({ to: answer.leader,',
      },
    ],
  },
  {
    id: 'R6',
    bug: 'nobody passes a request on',
    edit: {
      module: 'src/router/forwarder.js',
      find: 'const isTheirs = mayRelay &&',
      replace: 'const isTheirs = false &&',
    },
  },
  {
    id: 'R7',
    bug: 'all requests that wait ask for their leader, not one for all',
    edit: {
      module: 'src/router/router.js',
      find: 'const open = takeProbe(queue);',
      replace:
        'for (const each of queue.waiting.splice(0)) this.#ask(each, target);\n        const open = undefined;',
    },
  },
  {
    id: 'R8',
    bug: 'a node that stops hands nothing over',
    edit: {
      module: 'src/departure.js',
      find: "raft.avoidLeading('stopping', true);",
      replace: 'this.#isDone = true;',
    },
  },
  {
    id: 'R9',
    bug: 'a node that stops does not answer what it has',
    edit: {
      module: 'src/node-core.js',
      find: 'if (this.router.openCount > 0 || this.#forwarder.outstandingCount > 0)\n            return false;\n        return ',
      replace: 'return true || ',
    },
  },
  {
    id: 'X8',
    bug: 'waiters are forgotten when leadership is lost',
    edit: {
      module: 'src/router/router.js',
      find: 'this.#expire(this.#init.monotonicMillis());',
      replace: '',
    },
  },
  {
    id: 'X12',
    bug: 'a remembered request id is answered whatever is asked under it',
    edit: {
      module: 'src/limiter/fingerprint.js',
      find: 'if (first.cost !== other.cost)',
      replace: 'return undefined; if (first.cost !== other.cost)',
    },
  },
  {
    id: 'X12b',
    bug: 'a snapshot forgets what was asked under a request id',
    edit: {
      module: 'src/limiter/state/state-writer.js',
      find: 'out.integer(grant.cost);',
      replace: 'out.integer(1);',
    },
  },
  {
    id: 'X12c',
    bug: 'another request under the id of one in flight joins it',
    edit: {
      module: 'src/partition/partition.js',
      find: 'const conflict = conflictBetween(questionOf(earlier.request), questionOf(request));',
      replace: 'const conflict = undefined;',
    },
  },
  {
    id: 'X13',
    bug: 'every receipt names the first place of its entry',
    edit: {
      module: 'src/limiter/judgement.js',
      find: '{ term, index, position, timeMillis }',
      replace: '{ term, index, position: 0, timeMillis }',
    },
  },
  {
    id: 'X14',
    bug: 'a snapshot is written from the state as it is, not as it was when it began',
    edit: {
      module: 'src/limiter/state/captured-keys.js',
      find: 'this.#table.watcher = this;',
      replace: ';',
    },
  },
  {
    id: 'X15',
    bug: 'what had expired is not counted after a restore',
    edit: {
      module: 'src/limiter/state/state-reader.js',
      find: 'const [a, b] = this.#digest.words();',
      replace: 'state.memory.expire(state.changedMillis, Infinity); const [a, b] = this.#digest.words();',
    },
  },
  {
    id: 'X16',
    bug: 'new users are taken though there is no room to remember them',
    edit: {
      module: 'src/limiter/state/state-size.js',
      find: 'return this.bytes + bytes <= capBytes && ',
      replace: 'return ',
    },
  },
  {
    id: 'X17',
    bug: 'where there is no room nobody forgets what is idle',
    edit: {
      module: 'src/partition/housekeeping.js',
      find: 'return this.#isDue;',
      replace: 'return false;',
    },
  },
  {
    id: 'C1',
    bug: 'a node whose clock is wrong goes on leading',
    edit: {
      module: 'src/node-core.js',
      find: "this.raft.avoidLeading('clockRate', !verdict.fit);",
      replace: '',
    },
  },
  {
    id: 'C2',
    bug: 'clocks are compared as if round trips took no time',
    edit: {
      module: 'src/clock/peer-clock.js',
      find: 'const ownMillisMin = trip.sentMillis - since.receivedMillis;',
      replace: 'const ownMillisMin = middleOf(trip) - middleOf(since);',
    },
  },
  {
    id: 'C3',
    bug: 'one node whose clock is wrong makes all others doubt theirs',
    edit: {
      module: 'src/clock/clock-rates.js',
      find: 'const needed = Math.floor(nodes.length / 2) + 1;',
      replace: 'const needed = 1;',
    },
  },
  {
    id: 'C4',
    bug: 'readings of a new process are compared with those of the one before',
    edit: {
      module: 'src/clock/clock-rates.js',
      find: 'known?.process === process ? known.clock',
      replace: 'known !== undefined ? known.clock',
    },
  },
  {
    id: 'C5',
    bug: 'nobody asks for the time of others',
    edit: { module: 'src/clock/clock-watch.js', find: "send(node, 'ping',", replace: "void (node, 'ping'," },
  },
  {
    id: 'C6',
    bug: 'windows are not widened for clocks that differ',
    edit: {
      module: 'src/limiter/rules.js',
      find: 'return clockDriftPpm + Math.ceil(clockDriftPpm / 5);',
      replace: 'return 0;',
    },
  },
];
