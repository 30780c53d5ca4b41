/** Mutants: group time, and the clocks it is made of. */
import type { Mutant } from './mutant.ts';

export const CLOCK: readonly Mutant[] = [
  {
    id: 'M10',
    bug: 'the leader stamps with its wall clock',
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
    bug: 'each replica applies at its own wall clock',
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
    bug: 'group time: the larger estimate always wins',
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
    bug: 'group time: within a term the larger estimate wins, so drift adds up',
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
    bug: 'clocks are compared as if round trips took no time',
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
    bug: 'readings of a new process are compared with those of the one before',
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
    bug: 'nobody asks for the time of others',
    edits: [{ in: 'ClockWatch.tick', find: "send(node, 'ping',", replace: "void (node, 'ping'," }],
  },
  {
    id: 'C6',
    bug: 'windows are not widened for clocks that differ',
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
    bug: 'entries of former leaders that a new one sends do not anchor the clock',
    law: 'group time never outruns real time, nor falls behind',
    world: 'short-reigns',
    edits: [
      { in: 'handleAppend', find: 'if (log.last !== lastBefore) state.anchorClockToLog();', replace: '' },
    ],
  },
  {
    id: 'K3',
    bug: 'after a restart the clock is not anchored to the log',
    law: 'group time never outruns real time',
    edits: [{ in: 'CoreState.constructor', find: 'this.anchorClockToLog();', replace: '' }],
  },
  {
    id: 'K4',
    bug: 'a leader takes its own stamps for sightings and loses a part of a millisecond with each',
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
    bug: 'group time is rounded up, so every failover gains a part of a millisecond',
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
    bug: 'the round trip kept for comparison is the worst one, not the best',
    law: 'a wrong clock is found out in time',
    edits: [
      {
        in: 'PeerClock.#findFast',
        find: 'trip.receivedMillis - since.receivedMillis < limit',
        replace: 'trip.receivedMillis - since.receivedMillis > limit',
      },
    ],
    unitTest: {
      file: 'clock/peer-clock.test.ts',
      why: 'it finds a wrong clock a worst round trip later, and the law allows for many: only a difference so small that it takes minutes to find tells the two apart',
    },
  },
  {
    id: 'K7',
    bug: 'what was found out about a clock counts only after it should be forgotten',
    law: 'a wrong clock is found out in time',
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
    bug: 'all nodes must differ, not a majority, before a clock is taken for wrong',
    law: 'a wrong clock is found out in time',
    edits: [{ in: 'ClockRates.verdict', find: 'Math.floor(nodes.length / 2) + 1', replace: 'nodes.length' }],
  },
  {
    id: 'K9',
    bug: 'answers to pings of an earlier process count',
    law: 'no clock is taken for wrong that is right',
    edits: [{ in: 'ClockWatch.receivePong', find: 'asker !== process ||', replace: '' }],
    unitTest: {
      file: 'clock/clock-watch.test.ts',
      why: 'a process of the simulator has the clock of the one before it, so its readings are not wrong',
    },
  },
  {
    id: 'K10',
    bug: 'a difference of clocks is forgotten before it can be found again',
    law: 'a node whose clock is wrong leads nothing',
    edits: [
      { in: 'REMEMBERED_MILLIS_MIN', find: '30_000', replace: '300' },
      { in: 'REMEMBERED_MILLIS_MAX', find: '600_000', replace: '300' },
    ],
  },
  {
    id: 'K11',
    bug: 'a clock that is too slow is not looked for',
    law: 'a wrong clock is found out in time',
    edits: [{ in: 'PeerClock.add', find: '?? this.#findSlow(trip, limit)', replace: '' }],
  },
  {
    id: 'K12',
    bug: 'a node whose clock was wrong stays unfit when it is right again',
    faults: ['wrongClock'],
    law: 'who has a right clock is taken back',
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
    bug: 'heartbeats show the time of the last entry',
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
    bug: 'a snapshot install does not anchor the clock',
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
