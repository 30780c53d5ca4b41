/** Mutants: the way of a request from the listener to the leader, and of the answer back. */
import type { Mutant } from './mutant.ts';

export const ROUTER: readonly Mutant[] = [
  {
    id: 'M14',
    bug: 'a request with an unknown outcome is reported as certainly not proposed',
    edits: [
      {
        in: 'LOST',
        find: "reason: 'unknown_outcome', proposed: true",
        replace: "reason: 'unknown_outcome', proposed: false",
      },
    ],
  },
  {
    id: 'M14b',
    bug: 'a request that missed its deadline is reported as certainly not proposed',
    edits: [
      {
        in: 'OpenRequest.overdue',
        find: 'proposed: this.#mayBeProposed || isAsking',
        replace: 'proposed: false',
      },
    ],
  },
  {
    id: 'X8',
    bug: 'waiting requests are forgotten when leadership is lost',
    edits: [{ in: 'Router.tick', find: 'this.#expire(this.#init.monotonicMillis());', replace: '' }],
  },
  {
    id: 'X9',
    bug: 'a router goes on asking a silent node for ever',
    edits: [{ in: 'FailureDetector.tick', find: 'known.isSuspected = true;', replace: 'continue;' }],
  },
  {
    id: 'R1',
    bug: 'the time that a request waited at its listener does not count',
    edits: [
      { in: 'Router.ask', find: 'this.#init.listenerMillis() +', replace: 'this.#init.monotonicMillis() +' },
    ],
  },
  {
    id: 'R2',
    bug: 'late answers are passed on',
    edits: [
      {
        in: 'OpenRequest.verdictOn',
        find: 'nowMillis > this.deadlineMillis + LATE_ANSWER_MILLIS_MAX',
        replace: 'false',
      },
    ],
  },
  {
    id: 'R3',
    bug: 'hints about the leader are ignored',
    edits: [
      {
        in: 'Router.#learn',
        find: 'if (this.#lookup(partition).search.reported(answer.leader, answer.term))',
        replace: 'if (false)',
      },
    ],
  },
  {
    id: 'R4',
    bug: 'the search for a leader always begins with the same candidate',
    edits: [
      {
        in: 'LeaderSearch.next',
        find: 'if (this.#asked.has(node)) continue; this.#turn = turn + 1;',
        replace: 'this.#turn = 0;',
      },
    ],
  },
  {
    id: 'R5',
    bug: 'a node that does not lead passes a request on, however often it was passed on before',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: "const isTheirs = answer.kind === 'notLeader' && answer.leader === relayTo && this.#mayRelay(asked, from);",
        replace: "const isTheirs = answer.kind === 'notLeader' && this.isReachable(answer.leader);",
      },
      {
        in: 'Forwarder.receiveRequests',
        find: 'this.#relay(asked, deadlineMillis, from);',
        replace: 'this.#relay({ ...asked, relayTo: answer.leader }, deadlineMillis, from);',
      },
    ],
  },
  {
    id: 'R6',
    bug: 'no node passes a request on',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: '&& this.#mayRelay(asked, from);',
        replace: '&& false;',
      },
    ],
  },
  {
    id: 'R7',
    bug: 'every waiting request searches for its leader, not one for all',
    edits: [
      {
        in: 'Router.#advance',
        find: 'const open = queue.takeProbe();',
        replace: 'for (const each of queue.takeAll()) this.#ask(each, target); const open = undefined;',
      },
    ],
  },
  {
    id: 'R8',
    bug: 'a node that stops hands no group over',
    edits: [
      {
        in: 'Departure.#handOver',
        find: "raft.avoidLeading('stopping', true);",
        replace: 'this.#isDone = true;',
      },
    ],
  },
  {
    id: 'R9',
    bug: 'a node that stops does not answer the requests that it has',
    edits: [
      {
        in: 'NodeCore.isIdle',
        find: 'return !owesAnswers && open + this.waitingCount === 0;',
        replace: 'return !owesAnswers;',
      },
    ],
  },
  {
    id: 'R10',
    bug: 'a denial is final though another node may still grant the request',
    edits: [
      {
        in: 'OpenRequest.verdictOn',
        find: 'if (this.#unansweredSends > 0 || this.#isLost)',
        replace: 'if (false)',
      },
    ],
  },
  {
    id: 'R11',
    bug: 'a leader that refuses for want of room is not recognised as the leader',
    edits: [
      {
        in: 'Router.#learn',
        find: "else if (isProbe && meaningOf(answer) === 'leads')",
        replace: 'else if (false)',
      },
    ],
    unitTest: {
      file: 'router/search.test.ts',
      why: 'the requests are refused one by one a little later, and no law asks for an earlier answer',
    },
  },
  {
    id: 'T1',
    bug: 'a request that was refused at its deadline is still sent',
    features: ['shortDeadlines'],
    law: 'nodes send only requests that a client still waits for',
    edits: [{ in: 'Router.#release', find: 'if (open.isSettled) continue;', replace: '' }],
  },
  {
    id: 'T2',
    bug: 'an answer after the deadline is passed on as a second answer',
    law: 'every request is answered once',
    edits: [
      { in: 'Router.#answered', find: 'if (!open.isSettled) this.#conclude', replace: 'this.#conclude' },
    ],
  },
  {
    id: 'T3',
    bug: 'a conflict is reported though the request itself may hold the id',
    law: 'a request reported as a conflict is not charged',
    edits: [{ in: 'OpenRequest.verdictOn', find: 'this.#isLost = true;', replace: '' }],
    unitTest: {
      file: 'router/outcomes.test.ts',
      why: 'a frame must outlive its connection, and its id be used for another request that is refused elsewhere meanwhile',
    },
  },
  {
    id: 'T4',
    bug: 'a request without an id is sent again after an unknown outcome',
    law: 'requests without an id are in the log at most as often as they were attempted',
    edits: [
      {
        in: 'OpenRequest.verdictOn',
        find: '!answer.proposed || this.isRepeatable',
        replace: 'true',
      },
    ],
  },
  {
    id: 'T5',
    bug: 'a request without an id is sent to another node when its node is silent',
    law: 'requests without an id are in the log at most as often as they were attempted',
    edits: [{ in: 'Router.peerSuspected', find: '|| !open.isRepeatable', replace: '' }],
  },
  {
    id: 'T6',
    bug: 'a request that may have reached a silent node is not counted as sent there',
    law: 'a request reported as denied is not charged',
    edits: [{ in: 'OpenRequest.sentAgain', find: 'this.#unansweredSends += 1;', replace: '' }],
  },
  {
    id: 'T7',
    bug: 'outdated news about the leader is believed',
    law: 'a quorum makes progress',
    edits: [
      {
        in: 'LeaderSearch.reported',
        find: '(!isNewer && (term < this.#term || isKnown))',
        replace: 'false',
      },
    ],
    unitTest: {
      file: 'router/router.test.ts',
      why: 'each round asks every candidate once, whichever node is believed: the leader is found one question later, and no law counts single questions',
    },
  },
  {
    id: 'T8',
    bug: 'a node that was asked for the leader once is never asked again',
    law: 'a quorum makes progress',
    edits: [
      { in: 'LeaderSearch.next', find: 'this.#asked.clear();', replace: '' },
      { in: 'LeaderSearch.found', find: 'this.#asked.clear();', replace: '' },
      { in: 'LeaderSearch.reported', find: 'this.#asked.clear();', replace: '' },
    ],
  },
  {
    id: 'T13',
    bug: 'a node that was silent once is suspected for ever',
    law: 'a quorum makes progress',
    edits: [
      { in: 'FailureDetector.heard', find: 'known.isSuspected = false;', replace: '' },
      { in: 'FailureDetector.disconnected', find: 'this.#peers.delete(peer);', replace: '' },
    ],
  },
  {
    id: 'T14',
    bug: 'a node that left and came back is never asked again',
    law: 'in health every request is decided',
    edits: [
      { in: 'Forwarder.peerLost', find: 'this.#leaving.delete(peer);', replace: '' },
      { in: 'Forwarder.peerDisconnected', find: 'this.#leaving.delete(peer);', replace: '' },
    ],
  },
  {
    id: 'T17',
    bug: 'a frame that was never sent is taken for one with an unknown outcome',
    features: ['farApart', 'longDeadlines', 'ids'],
    faults: ['stuckRequests', 'oneWay', 'pause'],
    law: 'a request that was never sent is reported as certainly not proposed',
    edits: [
      {
        in: 'NOT_SENT',
        find: "kind: 'notLeader', leader: NO_NODE, term: 0",
        replace: "kind: 'unavailable', reason: 'unknown_outcome', proposed: true",
      },
    ],
  },
  {
    id: 'T18',
    bug: 'a request that lost its leader searches at once instead of waiting for the election',
    law: 'a crowd of requests without a leader sends no more questions than one of them would',
    edits: [
      {
        in: 'Router.#hearsSoon',
        find: 'return monotonicMillis() < leaderlessSinceMillis + electionMillisMax;',
        replace: 'return false;',
      },
    ],
    unitTest: {
      file: 'router/router.test.ts',
      why: 'searching in vain only costs messages: the law allows for as many as a search takes',
    },
  },
  {
    id: 'R13',
    bug: 'a node sends itself requests for a partition that has moved away',
    law: 'no node sends requests to itself over the network',
    edits: [
      {
        in: 'Router.#ask',
        find: 'if (target === nodeId)',
        replace: 'if (target === nodeId && partitions.has(partition))',
      },
    ],
    unitTest: {
      file: 'router/search.test.ts',
      why: 'a node has no connection to itself: such a request comes back unsent at once, and the next candidate is asked',
    },
  },
  {
    id: 'R14',
    bug: 'a guessed leader is believed like a reported one',
    law: 'a node finds a leader that it can reach',
    edits: [
      {
        in: 'LeaderSearch.reported',
        find: 'this.#leader !== NO_NODE && !this.#isGuess',
        replace: 'this.#leader !== NO_NODE',
      },
    ],
    unitTest: {
      file: 'router/search.test.ts',
      why: 'each round asks every candidate once, whichever node is believed: the leader is found one question later, and no law counts single questions',
    },
  },
  {
    id: 'R15',
    bug: 'a late answer whose sender says that it does not lead is ignored',
    law: 'a node finds a leader that it can reach',
    edits: [{ in: 'Calls.expire', find: 'this.#late.set(call.id, call);', replace: '' }],
    unitTest: {
      file: 'router/forwarder.test.ts',
      why: 'paths on which answers take longer than a deadline are healed before progress is demanded, and then a node that does not lead answers in time',
    },
  },
  {
    id: 'R16',
    bug: 'a node that once said that it leaves is not asked again, though it is there',
    law: 'a quorum makes progress',
    edits: [
      {
        in: 'Forwarder.tick',
        find: 'for (const [peer, untilMillis] of this.#leaving) if (untilMillis <= now) this.#leaving.delete(peer);',
        replace: '',
      },
    ],
    unitTest: {
      file: 'router/relay.test.ts',
      why: 'a message of the old process would have to be read after the new process is connected, and hardly any seed has a healed leader like that',
    },
  },
];
