/** Mutants: from the door to the leader and back. */
import type { Mutant } from './mutant.ts';

export const ROUTER: readonly Mutant[] = [
  {
    id: 'M14',
    bug: 'an unknown outcome is reported as certainly nothing',
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
    bug: 'a deadline is reported as certainly nothing',
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
    bug: 'waiters are forgotten when leadership is lost',
    edits: [{ in: 'Router.tick', find: 'this.#expire(this.#init.monotonicMillis());', replace: '' }],
  },
  {
    id: 'X9',
    bug: 'a router asks a silent node for ever',
    edits: [{ in: 'FailureDetector.tick', find: 'known.isSuspected = true;', replace: 'continue;' }],
  },
  {
    id: 'R1',
    bug: 'the age of a request at the door does not count',
    edits: [
      { in: 'Router.ask', find: 'this.#init.listenerMillis() +', replace: 'this.#init.monotonicMillis() +' },
    ],
  },
  {
    id: 'R2',
    bug: 'late answers pass',
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
    bug: 'nobody believes a hint',
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
    bug: 'the search for a leader begins with the same candidate again and again',
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
    bug: 'whoever does not lead passes a request on, however often it was passed on',
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
    bug: 'nobody passes a request on',
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
    bug: 'all requests that wait ask for their leader, not one for all',
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
    bug: 'a node that stops hands nothing over',
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
    bug: 'a node that stops does not answer what it has',
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
    bug: 'a leader is not found by what it refuses for want of room',
    edits: [
      {
        in: 'Router.#learn',
        find: "else if (isProbe && meaningOf(answer) === 'leads')",
        replace: 'else if (false)',
      },
    ],
    unitTest: {
      file: 'router/search.test.ts',
      why: 'one by one requests are refused a little later, and nobody owes them anything sooner',
    },
  },
  {
    id: 'T1',
    bug: 'what was refused at its deadline is still sent',
    features: ['shortDeadlines'],
    law: 'nodes ask only for what a client waits for',
    edits: [{ in: 'Router.#release', find: 'if (open.isSettled) continue;', replace: '' }],
  },
  {
    id: 'T2',
    bug: 'an answer after the deadline is one more answer',
    law: 'every request is answered once',
    edits: [
      { in: 'Router.#answered', find: 'if (!open.isSettled) this.#conclude', replace: 'this.#conclude' },
    ],
  },
  {
    id: 'T3',
    bug: 'a conflict is told though the request itself may have the id',
    law: 'nothing is charged that was told to be in conflict',
    edits: [{ in: 'OpenRequest.verdictOn', find: 'this.#isLost = true;', replace: '' }],
    unitTest: {
      file: 'router/outcomes.test.ts',
      why: 'a frame must outlive its connection, and its id be used for another request that is refused elsewhere meanwhile',
    },
  },
  {
    id: 'T4',
    bug: 'a request without an id is repeated after an unknown outcome',
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
    bug: 'a request without an id is asked elsewhere when its node is silent',
    law: 'requests without an id are in the log at most as often as they were attempted',
    edits: [{ in: 'Router.peerSuspected', find: '|| !open.isRepeatable', replace: '' }],
  },
  {
    id: 'T6',
    bug: 'what went astray at a silent node is not counted',
    law: 'nothing is charged that was told to be denied',
    edits: [{ in: 'OpenRequest.sentAgain', find: 'this.#unansweredSends += 1;', replace: '' }],
  },
  {
    id: 'T7',
    bug: 'old news of a leader are believed',
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
      why: 'whoever is believed, each round asks every candidate once: the leader is found a question later, and no law counts single questions',
    },
  },
  {
    id: 'T8',
    bug: 'who was asked for a leader once is never asked again',
    law: 'a quorum makes progress',
    edits: [
      { in: 'LeaderSearch.next', find: 'this.#asked.clear();', replace: '' },
      { in: 'LeaderSearch.found', find: 'this.#asked.clear();', replace: '' },
      { in: 'LeaderSearch.reported', find: 'this.#asked.clear();', replace: '' },
    ],
  },
  {
    id: 'T13',
    bug: 'who was silent once is suspected for ever',
    law: 'a quorum makes progress',
    edits: [
      { in: 'FailureDetector.heard', find: 'known.isSuspected = false;', replace: '' },
      { in: 'FailureDetector.disconnected', find: 'this.#peers.delete(peer);', replace: '' },
    ],
  },
  {
    id: 'T14',
    bug: 'who left and came back is never asked again',
    law: 'in health every request is decided',
    edits: [
      { in: 'Forwarder.peerLost', find: 'this.#leaving.delete(peer);', replace: '' },
      { in: 'Forwarder.peerDisconnected', find: 'this.#leaving.delete(peer);', replace: '' },
    ],
  },
  {
    id: 'T17',
    bug: 'a frame never sent is taken for one whose fate is unknown',
    features: ['farApart', 'longDeadlines', 'ids'],
    faults: ['stuckRequests', 'oneWay', 'pause'],
    law: 'certainly nothing is said of what never left',
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
    bug: 'who lost its leader asks around at once',
    law: 'a crowd of requests without a leader asks no more than one of them would',
    edits: [
      {
        in: 'Router.#hearsSoon',
        find: 'return monotonicMillis() < leaderlessSinceMillis + electionMillisMax;',
        replace: 'return false;',
      },
    ],
    unitTest: {
      file: 'router/router.test.ts',
      why: 'asking around in vain costs messages and nothing else: the law allows for as many as a search takes',
    },
  },
  {
    id: 'R13',
    bug: 'a node asks itself for a partition that has moved away',
    law: 'nobody asks itself over the network',
    edits: [
      {
        in: 'Router.#ask',
        find: 'if (target === nodeId)',
        replace: 'if (target === nodeId && partitions.has(partition))',
      },
    ],
    unitTest: {
      file: 'router/search.test.ts',
      why: 'to itself a node has no connection: what it asks there comes back unsent at once, and the next candidate is asked',
    },
  },
  {
    id: 'R14',
    bug: 'a node that had a request decided is believed to lead whatever is said of its term',
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
      why: 'whoever is believed, each round asks every candidate once: the leader is found a question later, and no law counts single questions',
    },
  },
  {
    id: 'R15',
    bug: 'nobody listens to who says too late that it does not lead',
    law: 'a node finds a leader that it can reach',
    edits: [{ in: 'Calls.expire', find: 'this.#late.set(call.id, call);', replace: '' }],
    unitTest: {
      file: 'router/forwarder.test.ts',
      why: 'paths on which answers take longer than a deadline are healed before anybody has to get on, and then whoever does not lead says so in time',
    },
  },
  {
    id: 'R16',
    bug: 'a node that said long ago that it leaves, and is there, is not asked',
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
      why: 'what a process said has to be read after the next one is connected, and hardly any seed has a healed leader of whom that is so',
    },
  },
];
