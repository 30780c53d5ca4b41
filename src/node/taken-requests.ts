/**
 * Passes requests from the listeners to the core of a node, or refuses them: before the core is loaded, while the
 * node is drained, and when it is excluded from its cluster.
 */
import type { Unavailable } from '../api/answer.ts';
import type { NodeApi } from '../api/api-listener.ts';
import { settleRequest } from '../matching/settlements.ts';
import type { NodeCore } from './node-core.ts';
import type { NodeReadiness } from './readiness.ts';

type Taken = Pick<NodeApi, 'ask' | 'allowListed' | 'peek' | 'refund' | 'operate' | 'setUsed' | 'customer'>;

const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
const DRAINING: Unavailable = { kind: 'unavailable', reason: 'draining', proposed: false };
const NOT_MEMBER: Unavailable = { kind: 'unavailable', reason: 'not_member', proposed: false };

/** The request part of `NodeApi`. */
export function takenRequests(readiness: NodeReadiness): Taken {
  /** The core; undefined while requests are refused with `refusal`. */
  const serving = (): NodeCore | undefined => {
    const { core, isDraining } = readiness;
    return isDraining || core?.isExcluded === true ? undefined : core;
  };
  const refusal = (): Unavailable => {
    const { core } = readiness;
    if (core === undefined) return STARTING;
    return core.isExcluded ? NOT_MEMBER : DRAINING;
  };
  return {
    ask(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else if (question.settle === true && question.requestId !== undefined)
        settleRequest(core.requests, question, done);
      else core.requests.ask(question, done);
    },
    allowListed(request, done) {
      const core = serving();
      if (core === undefined) done(refusal());
      else core.requests.askListed(request, (asked, reported) => core.ask(asked, reported), done);
    },
    peek(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.peeks.ask(question, done);
    },
    refund(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.refund(question, done);
    },
    operate(request, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.ask(request, done);
    },
    setUsed(question, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.customers.setUsed(question, done);
    },
    customer(customerId, action, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.requests.customers.ask(customerId, action, done);
    },
  };
}
