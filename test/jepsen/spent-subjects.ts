/**
 * Chooses users and keys that had used up their limits when a backup began, to request them from the restored cluster.
 * Leaves out those that may not get a grant within seconds: users with callers' timestamps, and keys that an operator
 * blocks.
 */
import type { Backup } from './backup-history.ts';
import type { Operation } from './history.ts';
import type { Ask, JointHistory, LimitAsked } from './joint-history.ts';
import { limitsAt, NAMED_RULE, NAMED_WINDOW, withoutWindow } from './joint-rules.ts';
import { OPERATED_USERS } from './key-operator.ts';
import { WORKLOAD_RULES } from './workload.ts';

export interface SpentLimit extends LimitAsked {
  /** The largest limit in any rule document. */
  readonly limit: number;
}

export interface SpentSubject {
  /** The body for `POST /v1/allow`. */
  readonly body: Readonly<Record<string, unknown>>;
  /** A grant counts at each of them. */
  readonly limits: readonly SpentLimit[];
}

/** The maximum per rule or kind of key. */
const SUBJECTS_MAX = 2;
const HIGHEST = limitsAt('high');
const CLUSTER_CLOCK = new Set(WORKLOAD_RULES.filter(({ clock }) => clock === 'cluster').map(({ id }) => id));

/** Ordered by their last denial, the latest first. */
export function spentSubjects(
  history: readonly Operation[],
  { asks }: JointHistory,
  { invokeNanos }: Backup,
): SpentSubject[] {
  const chosen = new Map<string, Map<string, SpentSubject>>();
  const choose = (kind: string, subject: SpentSubject): void => {
    const known = chosen.get(kind) ?? new Map<string, SpentSubject>();
    chosen.set(kind, known);
    if (known.size < SUBJECTS_MAX) known.set(JSON.stringify(subject.body), subject);
  };
  const wasDenied = (event: Operation | Ask): boolean =>
    event.allowed === false && (event.completeNanos ?? Infinity) < invokeNanos;
  for (const op of history.filter(wasDenied).sort(byCompletion))
    if (CLUSTER_CLOCK.has(op.rule) && /^\w[\w-]*$/.test(op.user)) choose(op.rule, ofSingle(op));
  for (const ask of asks.filter(wasDenied).sort(byCompletion)) {
    const subject = ofKey(ask);
    if (subject !== undefined) choose(ask.limits[0]?.rule ?? '', subject);
  }
  return [...chosen.values()].flatMap((subjects) => [...subjects.values()]);
}

function byCompletion(
  a: { readonly completeNanos: number | null },
  b: { readonly completeNanos: number | null },
): number {
  return (b.completeNanos ?? 0) - (a.completeNanos ?? 0);
}

function ofSingle({ user, rule, limit, windowMillis }: Operation): SpentSubject {
  return {
    body: { userId: user, rule: withoutWindow(rule) },
    limits: [{ rule, key: `user=${user}`, windowMillis, limit }],
  };
}

/** Undefined: the request has several keys, or one that an operator blocks. */
function ofKey({ limits: asked, blocked }: Ask): SpentSubject | undefined {
  const [first] = asked;
  if (first === undefined || blocked || asked.some(({ key }) => key !== first.key)) return undefined;
  const [name = '', value = ''] = first.key.split('=');
  if (OPERATED_USERS.some((user) => user === value)) return undefined;
  const limits = asked.map((limit) => ({ ...limit, limit: HIGHEST[limit.rule] ?? 0 }));
  const isNamed = first.rule === NAMED_WINDOW;
  return { body: isNamed ? { userId: value, rule: NAMED_RULE } : { descriptors: { [name]: value } }, limits };
}
