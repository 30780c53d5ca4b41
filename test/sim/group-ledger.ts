/** The grants and decisions in the committed log of one group: the input of the limiter's laws. */
import type { GroupId } from '../../raft/types.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { type Asked, IdLedger } from './id-ledger.ts';
import type { SaidOfKey } from './logged-entries.ts';
import { NaiveLimiter } from './naive-limiter.ts';
import type { TimedGrant } from './guarantees.ts';
import { check } from './story.ts';
import type { Rule } from '../../src/api/rule.ts';

export interface Grant extends TimedGrant {
  readonly index: number;
  /** Undefined for a grant judged at a caller's time. */
  readonly realMillis: number | undefined;
  readonly receipt: string;
  /** The entry that refunded it. */
  refundedIndex?: number;
  /** The entry that reset its key. */
  resetIndex?: number;
}

export interface GroupLedger {
  readonly id: GroupId;
  readonly machine: NaiveLimiter;
  table: RuleTable | undefined;
  /** The index of the last command that some replica has applied. */
  lastIndex: number;
  /** By id, the rule as it last was in force: it may have left the table. */
  readonly rules: Map<string, Rule>;
  readonly grants: Map<string, Grant[]>;
  /** By rule and user: grants up to here may be forgotten, since the window was shorter once. */
  readonly forgotten: Map<string, number>;
  /** By rule id: the entry that changed it last. */
  readonly changed: Map<string, number>;
  /** By key: the entry that gave it other limits last. */
  readonly ownChanged: Map<string, number>;
  /** The grants of the log, by receipt: under each limit. */
  readonly receipts: Map<string, Receipt>;
  /** The charges of each request, by its receipt. */
  readonly charged: Map<string, readonly Grant[]>;
  /** The decisions of the log, by index and position. */
  readonly requests: Map<string, LoggedRequest>;
  readonly ids: IdLedger;
}

interface LoggedRequest {
  readonly identity: string;
  readonly asked: Asked;
  readonly saying: string;
}

export interface Receipt {
  /** The identity of the request that got the grant. */
  readonly identity: string;
  readonly hasId: boolean;
  /** In real time; undefined if unknown. */
  readonly stampedMillis: number | undefined;
  /** When it was known to be committed, in real time; undefined if unknown. */
  readonly committedMillis: number | undefined;
  readonly horizonMillis: number;
  isReported: boolean;
}

export function newLedger(id: GroupId): GroupLedger {
  return {
    id,
    machine: new NaiveLimiter(),
    table: undefined,
    lastIndex: 0,
    rules: new Map(),
    grants: new Map(),
    forgotten: new Map(),
    changed: new Map(),
    ownChanged: new Map(),
    receipts: new Map(),
    charged: new Map(),
    requests: new Map(),
    ids: new IdLedger(),
  };
}

export function ruleOf(group: GroupLedger, ruleId: string): Rule {
  const rule = group.rules.get(ruleId);
  check(rule !== undefined, () => `a decision by rule ${ruleId}, which was never in force`);
  return rule;
}

export function grantsOf(group: GroupLedger, ruleId: string, userId: string): Grant[] {
  const key = `${ruleId}/${userId}`;
  let grants = group.grants.get(key);
  if (grants === undefined) {
    grants = [];
    group.grants.set(key, grants);
  }
  return grants;
}

/** It was neither refunded nor its key reset before entry `index`; in that entry it may have been. */
export function countsAt({ refundedIndex = Infinity, resetIndex = Infinity }: Grant, index: number): boolean {
  return Math.min(refundedIndex, resetIndex) >= index;
}

/**
 * The cost of grants up to entry `throughIndex` that are later than `afterMillis`. Times never decrease along a key.
 */
export function costSince(grants: readonly Grant[], afterMillis: number, throughIndex: number): number {
  let cost = 0;
  for (let i = grants.length - 1; i >= 0; i -= 1) {
    const grant = grants[i];
    if (grant === undefined || grant.timeMillis <= afterMillis) break;
    if (grant.index <= throughIndex && countsAt(grant, throughIndex)) cost += grant.cost;
  }
  return cost;
}

export function realCostSince(grants: readonly Grant[], afterMillis: number): number {
  let cost = 0;
  for (let i = grants.length - 1; i >= 0; i -= 1) {
    const grant = grants[i];
    if (grant === undefined || (grant.realMillis !== undefined && grant.realMillis <= afterMillis)) break;
    if (grant.realMillis !== undefined) cost += grant.cost;
  }
  return cost;
}

export function receiptOf({ decided, ruleId }: Pick<Decision, 'decided' | 'ruleId'>): string {
  return JSON.stringify([decided.index, decided.position ?? null, decided.term, decided.timeMillis, ruleId]);
}

/** Grants of a key no longer count after a reset or a set amount, and are judged anew after it gets other limits. */
export function changedBy(
  group: GroupLedger,
  { userId, said }: SaidOfKey,
  decision: Decision,
  { index, realMillis }: { readonly index: number; readonly realMillis: number | undefined },
): void {
  const { isDone = false, record } = decision.customer ?? {};
  // A record without content is not kept, as if it were deleted.
  const isGone = said.type === 'delete' || (said.type === 'put' && isDone && record?.version === 0);
  if (isGone || record?.version === index) group.ownChanged.set(userId, index);
  if (said.type !== 'reset' && said.type !== 'set') return;
  if (!isDone) return;
  const isMeant = (key: string): boolean =>
    said.type === 'reset' || said.ruleIds.some((ruleId) => key === `${ruleId}/${userId}`);
  for (const [key, grants] of group.grants) {
    if (!key.endsWith(`/${userId}`) || !isMeant(key)) continue;
    for (const grant of grants) grant.resetIndex ??= index;
  }
  if (said.type === 'reset' || said.used === 0) return;
  const { timeMillis } = decision.decided;
  // It counts as a grant that no client saw.
  for (const ruleId of said.ruleIds)
    grantsOf(group, ruleId, userId).push({
      timeMillis,
      madeMillis: timeMillis,
      cost: said.used,
      index,
      realMillis,
      receipt: '',
    });
}
