/** Mutants: from the door to the leader and back, and the frames between. */
import type { Mutant } from './mutant.ts';

export const ROUTER: readonly Mutant[] = [
  {
    id: 'M14',
    bug: 'an unknown outcome is reported as certainly nothing',
    edits: [
      {
        in: 'Forwarder.peerDisconnected',
        find: "reason: 'unknown_outcome', proposed: true",
        replace: "reason: 'unknown_outcome', proposed: false",
      },
    ],
  },
  {
    id: 'M14b',
    bug: 'a deadline is reported as certainly nothing',
    edits: [
      { in: 'Router.#expire', find: 'proposed: open.maybeProposed || isAsking', replace: 'proposed: false' },
    ],
  },
  {
    id: 'M16',
    bug: 'frames carry no checksum',
    edits: [
      {
        in: 'FrameDecoder.#checkHeader',
        find: 'if (buffer.readUInt32BE(offset + 20) !== crc32(buffer.subarray(offset, offset + 20)))',
        replace: 'if (false)',
      },
      {
        in: 'FrameDecoder.#frame',
        find: 'if (bytes.readUInt32BE(16) !== crc32(payload))',
        replace: 'if (false)',
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
      { in: 'Router.allow', find: 'this.#init.doorMillis() +', replace: 'this.#init.monotonicMillis() +' },
    ],
  },
  {
    id: 'R2',
    bug: 'late answers pass',
    edits: [
      {
        in: 'Router.#settleBy',
        find: 'if (this.#init.monotonicMillis() > open.deadlineMillis + LATE_ANSWER_MILLIS_MAX) {',
        replace: 'if (false) {',
      },
    ],
  },
  {
    id: 'R3',
    bug: 'nobody believes a hint',
    edits: [
      {
        in: 'Router.#learn',
        find: 'if (this.#queue(partition).search.told(answer.leader, answer.term))',
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
        find: "const isTheirs = mayRelay && answer.kind === 'notLeader' && answer.leader === relayTo;",
        replace: "const isTheirs = answer.kind === 'notLeader' && answer.leader !== 0;",
      },
      {
        in: 'Forwarder.receiveRequests',
        find: 'if (!isTheirs || !this.isReachable(relayTo))',
        replace: 'if (!isTheirs || !this.isReachable(answer.leader))',
      },
      {
        in: 'Forwarder.receiveRequests',
        find: 'this.forward({ to: relayTo,',
        replace: 'this.forward({ to: answer.leader,',
      },
    ],
  },
  {
    id: 'R6',
    bug: 'nobody passes a request on',
    edits: [
      {
        in: 'Forwarder.receiveRequests',
        find: 'const isTheirs = mayRelay &&',
        replace: 'const isTheirs = false &&',
      },
    ],
  },
  {
    id: 'R7',
    bug: 'all requests that wait ask for their leader, not one for all',
    edits: [
      {
        in: 'Router.#advance',
        find: 'const open = takeProbe(queue);',
        replace:
          'for (const each of queue.waiting.splice(0)) this.#ask(each, target); const open = undefined;',
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
        find: 'if (this.router.openCount > 0 || this.#forwarder.outstandingCount > 0) return false; return',
        replace: 'return true || ',
      },
    ],
  },
  {
    id: 'R10',
    bug: 'a denial is final though another node may still grant the request',
    edits: [
      { in: 'Router.#settleBy', find: 'if (open.astray > 0 || mayBeInLog) {', replace: 'if (false) {' },
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
  },
];
