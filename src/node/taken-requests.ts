/** Which requests of clients the doors of this node take, and hand to its core: none before it is loaded, none while it is drained. */
import type { Unavailable } from '../api/answer.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { DoneWith, UserRequest } from '../api/user-request.ts';
import type { NodeCore } from './node-core.ts';
import type { NodeReadiness } from './readiness.ts';

type Requests = Pick<
  NodeBehindDoor,
  | 'allow'
  | 'hasDocument'
  | 'allowByDefault'
  | 'allowDescribed'
  | 'allowListed'
  | 'look'
  | 'refund'
  | 'operate'
  | 'customer'
  | 'refundDescribed'
>;

const STARTING: Unavailable = { kind: 'unavailable', reason: 'starting', proposed: false };
const DRAINING: Unavailable = { kind: 'unavailable', reason: 'draining', proposed: false };

export function takenRequests(readiness: NodeReadiness): Requests {
  /** Undefined while requests are refused, by `refusal`. */
  const serving = (): NodeCore | undefined => (readiness.isDraining ? undefined : readiness.core);
  const refusal = (): Unavailable => (readiness.core === undefined ? STARTING : DRAINING);
  const ask = <R extends UserRequest>(request: R, done: DoneWith<R>): void => {
    const core = serving();
    if (core === undefined) (done as DoneWith<UserRequest>)(refusal(), 0);
    else core.ask(request, done);
  };
  return {
    allow: ask,
    hasDocument: () => readiness.core?.rules.known?.definitions !== undefined,
    allowByDefault(request, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.byDefault.ask(request, done);
    },
    allowDescribed(request, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.described.ask(request, done);
    },
    allowListed(request, done) {
      const core = serving();
      if (core === undefined) done(refusal());
      else core.described.askListed(request, (asked, told) => core.ask(asked, told), done);
    },
    look: ask,
    refund: ask,
    operate: ask,
    customer(customerId, action, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.described.customers.ask(customerId, action, done);
    },
    refundDescribed(request, done) {
      const core = serving();
      if (core === undefined) done(refusal(), 0);
      else core.described.refund(request, done);
    },
  };
}
