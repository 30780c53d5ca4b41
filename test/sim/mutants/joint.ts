/**
 * Mutants: requests under several limits: all limits grant or none does, and each request is remembered, refunded and
 * answered as a whole.
 */
import type { Mutant } from './mutant.ts';

export const JOINT: readonly Mutant[] = [
  {
    id: 'J1',
    bug: 'only the first limit of a request is asked; the others are charged unasked',
    law: 'no window over its limit',
    edits: [
      {
        in: 'JointJudgement.judge',
        find: 'if (judgement.isDenied)',
        replace: 'if (i === 0 && judgement.isDenied)',
      },
    ],
  },
  {
    id: 'J2',
    bug: 'a request that one of its limits denies is still charged under its first',
    law: 'a denied request is charged nowhere',
    edits: [
      {
        in: 'LimiterStateMachine.#decideJointly',
        find: 'onDecision?.(i, joint.answer);',
        replace: `onDecision?.(i, joint.answer);
          const first = { ...request, requestId: undefined, further: undefined };
          const isDenied = joint.outcome === 'denied';
          if (isDenied && joint.judge(state, first, { now, room: 'free', place, keysFor }) === 'fits')
            joint.grant(state, first, place, keysFor);`,
      },
    ],
  },
  {
    id: 'J3',
    bug: 'a refund gives back under the first limit only',
    law: 'a refund takes the request back as a whole',
    edits: [
      {
        in: 'LimiterState.refund',
        find: 'for (const limit of this.memory.limitsOf(id)) this.#refundLimit(limit);',
        replace: 'this.#refundLimit(id);',
      },
    ],
  },
  {
    id: 'J4',
    bug: 'a state restored from a snapshot remembers only the first limit of a request',
    law: 'replicas at the same index are equal',
    edits: [
      {
        in: 'StateReader.#readGrant',
        find: 'memory.remember(key, ruleId).readFrom(input);',
        replace: `if (requestIdBytes > 0 || memory.size === 0) memory.remember(key, ruleId).readFrom(input);
          else {
            const nowhere = { words: new Uint32Array(64), doubles: new Float64Array(64), at: 0 };
            Object.assign(Object.create(memory.view(memory.first)), nowhere).readFrom(input);
          }`,
      },
    ],
  },
  {
    id: 'J5',
    bug: 'a repeated request under several limits is charged again',
    law: 'a repeated request gets the identical answer',
    edits: [
      {
        in: 'JointJudgement.judge',
        find: "if (judgement.isRepeated(state, question, now)) return this.#refuse('repeated', state, question, place);",
        replace: 'judgement.isRepeated(state, question, now);',
      },
    ],
  },
  {
    id: 'J6',
    bug: 'room in memory is checked for each limit of a request alone, not for all of them together',
    features: ['smallStates', 'severalLimits'],
    law: 'no state grows beyond its cap',
    edits: [
      {
        in: 'JointJudgement.judge',
        find: 'bytes += state.bytesFor(judgement, question.hasRequestId);',
        replace: '',
      },
    ],
  },
  {
    id: 'J7',
    bug: 'the answer to a grant under several limits names the first, not the one with least remaining',
    law: 'an answer describes the limit that binds',
    edits: [
      {
        in: 'jointGrant',
        find: 'grants.reduce((a, b) => (b.remaining < a.remaining ? b : a))',
        replace: 'grants[0]!',
      },
    ],
  },
  {
    id: 'J8',
    bug: 'the answer to a denial by several limits names the first, not the one with the longest wait',
    law: 'an answer describes the limit that binds',
    edits: [
      {
        in: 'jointDenial',
        find: 'denials.reduce((a, b) => (waitMillisOf(b) > waitMillisOf(a) ? b : a))',
        replace: 'denials[0]!',
      },
    ],
  },
  {
    id: 'J9',
    bug: 'a state restored from a snapshot takes the digest of a question for a timestamp',
    law: 'replicas at the same index are equal',
    edits: [
      {
        in: 'GrantView.readFrom',
        find: "if (input.flag('matched')) words[at + LENGTHS]! |= HAS_DIGEST;",
        replace: "input.flag('matched');",
      },
    ],
  },
  {
    id: 'J10',
    bug: 'the digest of the question is lost on its way into the log',
    law: 'the log holds what was asked',
    edits: [
      {
        in: 'AllowBatchBuilder.#addMatched',
        find: '.integer(askedDigest);',
        replace: '.integer(1);',
      },
    ],
  },
  {
    id: 'J11',
    bug: 'the answer to a refund names the first limit, though the grant named another',
    law: 'a refund has the receipt that its caller knows',
    edits: [
      {
        in: 'LimiterState.refund',
        find: 'const reporting = this.memory.reportingOf(id);',
        replace: 'const reporting = id;',
      },
    ],
  },
  {
    id: 'J12',
    bug: 'a request that fits now is answered with a wait, until the grants of an earlier meter expire',
    law: '`retryAfter` is the time at which the request fits',
    edits: [{ in: 'Judgement.denial', find: 'const wait = fits ? 0 :', replace: 'const wait =' }],
    unitTest: {
      file: 'limiter/meter-examples.test.ts',
      why: 'few worlds change a meter, and the limits of a key with budget left must be read while its old grants still count',
    },
  },
  {
    id: 'J13',
    bug: 'the wait of a grant is that of one of its limits, not the longest',
    law: '`wait` is when the request may go on',
    edits: [
      {
        in: 'jointGrant',
        find: 'return waitMillis === 0 ? joint : { ...joint, waitMillis };',
        replace: 'return joint;',
      },
    ],
    unitTest: {
      file: 'limiter/joint.test.ts',
      why: 'few worlds have queues, and the limit that queues must not be the one with least remaining',
    },
  },
  {
    id: 'A35',
    bug: 'a retry that waits together with its first attempt takes the grant of that attempt for its own',
    law: 'no reservation stays charged',
    edits: [
      {
        in: 'Waiters.maybeJoin',
        find: 'request.attempt !== earlier.request.attempt',
        replace: 'false',
      },
    ],
    unitTest: {
      file: 'partition/retries.test.ts',
      why: 'two attempts must wait for one entry of the log, but users repeat a request only when they were answered or their node is gone',
    },
  },
  {
    id: 'A36',
    bug: 'where a request is under one limit only, its own cost replaces the cost of the rule instead of multiplying it',
    law: 'a request is charged what the rules say',
    edits: [
      {
        in: 'plainRequestFor',
        find: 'cost: cost * (request.cost ?? 1)',
        replace: 'cost: request.cost ?? cost',
      },
    ],
    unitTest: {
      file: 'matching/matched-requests.test.ts',
      why: 'users of the simulator that send only a user name are under no rule with a cost of its own',
    },
  },
];
