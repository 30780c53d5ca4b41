/**
 * Handles what operators ask about customers (read, put, block, set usage): checks the request, finds the key, and
 * checks that the current rules have the limits that it names. The partition of the key then decides.
 */
import type { Invalid } from '../api/answer.ts';
import {
  type CustomerAction,
  type CustomerRequest,
  invalidInCustomer,
  type UsedQuestion,
} from '../api/customer.ts';
import type { LimitOverride } from '../api/customer-record.ts';
import { isBoundedText } from '../api/bounded.ts';
import { KEY_BYTES_MAX } from '../api/request.ts';
import type { DoneWith } from '../api/user-request.ts';
import { METERS_WITH_BURST } from '../rules/rule-definition.ts';
import { type CustomerCache, customerKey } from './customer-cache.ts';
import type { RuleSet } from './rule-set.ts';

/** The id must fit into a key together with `customer=`. */
const CUSTOMER_BYTES_MAX = KEY_BYTES_MAX - 'customer='.length;

/** What `Customers` needs. */
export interface CustomersInit {
  /** See `MatchedRequestsInit`. */
  readonly ruleSet: () => RuleSet | 'starting';
  readonly ask: (request: CustomerRequest, done: DoneWith<CustomerRequest>) => void;
  readonly cache: CustomerCache;
}

/** The customer part of the API of one node. */
export class Customers {
  readonly #init: CustomersInit;

  constructor(init: CustomersInit) {
    this.#init = init;
  }

  /**
   * Reads or changes the record of a customer. Invalid ids, actions and unknown limits are answered as `invalid`.
   *
   * @param action may be out of range; it is checked here
   * @param done called once
   */
  ask(customerId: string, action: CustomerAction, done: DoneWith<CustomerRequest>): void {
    const { cache, ask } = this.#init;
    const userId = customerKey(customerId);
    if (userId === undefined || !isBoundedText(customerId, CUSTOMER_BYTES_MAX)) {
      const message = `customer must be text of 1 to ${CUSTOMER_BYTES_MAX} bytes`;
      return done({ kind: 'invalid', field: 'customer', message }, 0);
    }
    const request: CustomerRequest = { ask: 'customer', userId, action };
    const invalid =
      invalidInCustomer(request) ?? (action.type === 'put' ? this.#unknownIn(action.overrides) : undefined);
    if (invalid !== undefined) return done(invalid, 0);
    if (action.type === 'put' && action.overrides.length > 0 && this.#init.ruleSet() === 'starting')
      return done({ kind: 'unavailable', reason: 'starting', proposed: false }, 0);
    ask(request, (answer, partition) => {
      if (answer.kind === 'customer') cache.learn(userId, answer.outcome.record);
      done(answer, partition);
    });
  }

  /**
   * Sets how much of the limits of a rule a key has used.
   *
   * @param question well-formed (`invalidInUsed`)
   * @param done called once
   */
  setUsed({ key, rule, used }: UsedQuestion, done: DoneWith<CustomerRequest>): void {
    const { ruleSet: ruleSetOf, ask } = this.#init;
    const ruleSet = ruleSetOf();
    if (ruleSet === 'starting') return done({ kind: 'unavailable', reason: 'starting', proposed: false }, 0);
    const ruleIds = ruleSet.limitIdsOf(key, rule);
    if (ruleIds === undefined) {
      const message = `rule must count by keys like '${key}', but '${rule}' does not`;
      return done({ kind: 'invalid', field: 'rule', message }, 0);
    }
    ask({ ask: 'customer', userId: key, action: { type: 'set', ruleIds, used } }, done);
  }

  /**
   * The first override that the rules cannot hold. The limits of one customer are stored under its key, so only
   * rules that count by customer alone can be overridden.
   */
  #unknownIn(overrides: readonly LimitOverride[]): Invalid | undefined {
    const ruleSet = this.#init.ruleSet();
    if (ruleSet === 'starting') return undefined;
    for (const [i, { ruleId, burst }] of overrides.entries()) {
      const rule = ruleSet.ruleByCustomer(ruleId);
      const at = `overrides[${i}]`;
      if (rule === undefined) return wrong(`${at}.rule`, `${at}.rule ${ruleSet.whyNoOverride(ruleId)}`);
      if (burst !== undefined && !METERS_WITH_BURST.includes(rule.meter))
        return wrong(`${at}.burst`, `${at}.burst must be absent: '${ruleId}' is not a bucket`);
    }
    return undefined;
  }
}

function wrong(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
