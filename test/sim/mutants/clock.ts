/** Mutants: group time, and the clocks of the nodes. */
import type { Mutant } from './mutant.ts';

export const CLOCK: readonly Mutant[] = [
  {
    id: 'M10',
    bug: 'the leader stamps entries with its wall clock',
    edits: [
      {
        in: 'GroupClock.nowMillis',
        find: 'return Math.floor(this.#anchor.timeMillis + Math.max(0, elapsed));',
        replace: 'return Math.floor(this.#originMillis());',
      },
    ],
  },
  {
    id: 'M10b',
    bug: 'each replica applies entries at the time of its own wall clock',
    edits: [
      {
        in: 'Partition.#applyOurs',
        find: 'this.housekeeping.apply(command, entry, (_, decision)',
        replace:
          'this.#machine.apply(command, { ...entry, timeMillis: Math.max(this.#machine.applied.timeMillis, Math.floor(this.#init.wallMillis())) }, (_, decision)',
      },
    ],
  },
  {
    id: 'X3',
    bug: 'group time is never corrected downwards: the largest estimate always wins',
    edits: [
      {
        in: 'GroupClock.anchor',
        find: 'this.#anchor = {',
        replace: 'if (this.#anchor && this.nowMillis() >= timeMillis) return; this.#anchor = {',
      },
    ],
  },
  {
    id: 'X3b',
    bug: 'group time is corrected downwards only in a new term, so drift adds up within a term',
    edits: [
      {
        in: 'GroupClock.anchor',
        find: 'this.#anchor = {',
        replace:
          'if (this.term === _term && this.nowMillis() >= timeMillis) return; this.term = _term; this.#anchor = {',
      },
    ],
  },
  {
    id: 'C1',
    bug: 'a node whose clock is wrong goes on leading',
    edits: [
      {
        in: 'NodeCore.#newClockWatch',
        find: "this.raft.avoidLeading('clockRate', !verdict.fit);",
        replace: '',
      },
    ],
  },
  {
    id: 'C2',
    bug: 'clocks are compared as if messages took no time',
    edits: [
      {
        in: 'PeerClock.#findFast',
        find: 'const ownMillisMin = trip.sentMillis - since.receivedMillis;',
        replace: 'const ownMillisMin = middleOf(trip) - middleOf(since);',
      },
    ],
  },
  {
    id: 'C3',
    bug: 'one node whose clock is wrong makes all others doubt theirs',
    edits: [
      {
        in: 'ClockRates.verdict',
        find: 'const needed = Math.floor(nodes.length / 2) + 1;',
        replace: 'const needed = 1;',
      },
    ],
  },
  {
    id: 'C4',
    bug: 'readings of the new process of a peer are compared with those of its old process',
    edits: [
      {
        in: 'ClockRates.add',
        find: 'known?.process === process ? known.clock',
        replace: 'known !== undefined ? known.clock',
      },
    ],
  },
  {
    id: 'C5',
    bug: 'nodes do not ask each other for the time',
    edits: [{ in: 'ClockWatch.tick', find: "send(node, 'ping',", replace: "void (node, 'ping'," }],
  },
  {
    id: 'C6',
    bug: 'windows are not widened for the drift between clocks',
    edits: [
      {
        in: 'leaderDriftPpm',
        find: 'return clockDriftPpm + Math.ceil(clockDriftPpm / 5);',
        replace: 'return 0;',
      },
    ],
  },
  {
    id: 'K1',
    bug: 'a replica follows the time of any leader, also of one whose entries it does not hold',
    law: 'group time never outruns real time',
    world: 'short-reigns',
    features: ['slowPaths'],
    edits: [{ in: 'CoreState.observeLeaderTime', find: 'if (term === this.log.last.term)', replace: '' }],
  },
  {
    id: 'K2',
    bug: 'a follower does not set its clock by the entries of earlier leaders that a new leader sends',
    law: 'group time never outruns real time, nor falls behind',
    world: 'short-reigns',
    edits: [
      { in: 'handleAppend', find: 'if (log.last !== lastBefore) state.anchorClockToLog();', replace: '' },
    ],
  },
  {
    id: 'K3',
    bug: 'after a restart the clock is not set by the log',
    law: 'group time never outruns real time',
    edits: [{ in: 'CoreState.constructor', find: 'this.anchorClockToLog();', replace: '' }],
  },
  {
    id: 'K4',
    bug: 'a leader sets its clock again by each of its own stamps and loses a fraction of a millisecond each time',
    law: 'group time does not fall behind real time',
    edits: [
      {
        in: 'appendEntry',
        find: 'if (last.term !== entry.term) state.anchorClockToLog();',
        replace: 'state.anchorClockToLog();',
      },
    ],
  },
  {
    id: 'K5',
    bug: 'group time is rounded up, so every failover gains a fraction of a millisecond',
    law: 'group time never outruns real time',
    edits: [
      {
        in: 'GroupClock.nowMillis',
        find: 'return Math.floor(this.#anchor.timeMillis',
        replace: 'return Math.ceil(this.#anchor.timeMillis',
      },
    ],
  },
  {
    id: 'K6',
    bug: 'clocks are compared over the slowest round trip, not over the fastest',
    law: 'a wrong clock is found in time',
    edits: [
      {
        in: 'PeerClock.#findFast',
        find: 'trip.receivedMillis - since.receivedMillis < limit',
        replace: 'trip.receivedMillis - since.receivedMillis > limit',
      },
    ],
    unitTest: {
      file: 'clock/peer-clock.test.ts',
      why: 'it only finds a wrong clock one slow round trip later, and the law allows for many: only a difference so small that it takes minutes to find would show the bug',
    },
  },
  {
    id: 'K7',
    bug: 'a verdict about a clock counts only after the moment when it should be forgotten',
    law: 'a wrong clock is found in time',
    edits: [
      {
        in: 'ClockRates.verdict',
        find: 'nowMillis >= found.forgottenMillis',
        replace: 'nowMillis < found.forgottenMillis',
      },
    ],
  },
  {
    id: 'K8',
    bug: 'a clock is called wrong only if all other nodes differ from it, not if a majority does',
    law: 'a wrong clock is found in time',
    edits: [{ in: 'ClockRates.verdict', find: 'Math.floor(nodes.length / 2) + 1', replace: 'nodes.length' }],
  },
  {
    id: 'K9',
    bug: 'answers to pings that an earlier process sent count',
    law: 'a right clock is never called wrong',
    edits: [{ in: 'ClockWatch.receivePong', find: 'asker !== process ||', replace: '' }],
    unitTest: {
      file: 'clock/clock-watch.test.ts',
      why: 'in the simulator a new process has the clock of the process before it, so its readings are not wrong',
    },
  },
  {
    id: 'K10',
    bug: 'a difference between clocks is forgotten before it can be found again',
    law: 'a node whose clock is wrong leads no group',
    edits: [
      { in: 'REMEMBERED_MILLIS_MIN', find: '30_000', replace: '300' },
      { in: 'REMEMBERED_MILLIS_MAX', find: '600_000', replace: '300' },
    ],
  },
  {
    id: 'K11',
    bug: 'nodes never detect a clock that is too slow',
    law: 'a wrong clock is found in time',
    edits: [{ in: 'PeerClock.add', find: '?? this.#findSlow(trip, limit)', replace: '' }],
  },
  {
    id: 'K12',
    bug: 'a node whose clock was wrong stays unfit after the clock is right again',
    faults: ['wrongClock'],
    law: 'a node whose clock is right again may lead again',
    edits: [
      {
        in: 'ClockWatch.#judge',
        find: 'if (!isSame) judged(verdict);',
        replace: 'if (!isSame && !verdict.fit) judged(verdict);',
      },
    ],
  },
  {
    id: 'H1',
    bug: 'heartbeats carry the time of the last entry instead of the time now',
    law: "group time does not fall behind the leader's, nor real time",
    edits: [
      {
        in: 'sendHeartbeat',
        find: 'timeMillis: state.clock.nowMillis()',
        replace: 'timeMillis: state.log.last.timeMillis',
      },
    ],
  },
  {
    id: 'H3',
    bug: 'installing a snapshot does not set the clock',
    law: "group time after an install is at or after the snapshot's",
    edits: [
      {
        in: 'handleInstallSnapshot',
        find: 'state.pendingInstall = message; state.anchorClockToLog();',
        replace: 'state.pendingInstall = message;',
      },
    ],
  },
];
