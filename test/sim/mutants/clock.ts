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
        in: 'Partition.apply',
        find: 'this.#machine.apply(command, entry, (i, decision)',
        replace:
          'this.#machine.apply(command, { ...entry, timeMillis: Math.max(this.#machine.applied.timeMillis, Math.floor(this.#init.wallMillis())) }, (i, decision)',
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
      { in: 'NodeCore.constructor', find: "this.raft.avoidLeading('clockRate', !verdict.fit);", replace: '' },
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
];
