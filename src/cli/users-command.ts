/**
 * Requests about one user or key: ask for a grant, show the status, and block, reset, set or refund. Over HTTP at one
 * node of a running cluster.
 */
import { descriptorsIn, GLOBAL_KEY } from '../api/key-text.ts';
import { UNMATCHED } from '../api/refusals.ts';
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, type NodeBody, type Sent } from './ask-node.ts';
import { textTable } from './text-table.ts';

const ANSWER_MILLIS_MAX = 10_000;
const NO_RULE = 'no rule matches, and the rules deny such requests';

/** Which node to ask, and how to print. */
export interface UsersOptions {
  /** The URL of a node. */
  readonly node: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** The grant to ask for. */
export interface AllowTerms {
  readonly userId?: string | undefined;
  readonly rule?: string | undefined;
  readonly cost?: number | undefined;
  readonly requestId?: string | undefined;
  /** Descriptors by name, from which the rules find the limits. */
  readonly descriptors?: Readonly<Record<string, string>> | undefined;
}

/** @throws ClusterCommandError if there is no decision */
export async function askForGrant(terms: AllowTerms, options: UsersOptions): Promise<'granted' | 'denied'> {
  const answer = await askNode(new URL('/v1/allow', options.node), ANSWER_MILLIS_MAX, posted(terms));
  const { status, body } = answer;
  // Status 403 can also mean a token without the right role.
  const isHeldBack = body['blocked'] === true || body['reason'] === UNMATCHED;
  const isDenied = status === 429 || (status === 403 && isHeldBack);
  const said = isDenied ? body : answerOfChange(answer, options.node);
  options.print(options.json === true ? JSON.stringify(said) : sentenceOf(said));
  return isDenied ? 'denied' : 'granted';
}

function sentenceOf(body: NodeBody): string {
  const { allowed, blocked, unlimited, degraded, limit, remaining, rule, retryAfterMillis, reason } = body;
  if (blocked === true) {
    const wait = retryAfterMillis === undefined ? '' : `; again in ${Number(retryAfterMillis)} ms`;
    return `denied: blocked by an operator${wait}`;
  }
  if (reason === UNMATCHED) return `denied: ${NO_RULE}`;
  if (unlimited === true) return 'allowed: no rule limits it';
  if (degraded === true)
    return `${allowed === true ? 'allowed' : 'denied'} by a fail mode: the cluster could not decide`;
  const under = `${String(remaining)} of ${String(limit)} left, by rule ${String(rule)}`;
  if (allowed === true) return `allowed: ${under}`;
  const cause = reason === 'restored' ? ', as the cluster was restored' : '';
  const wait =
    retryAfterMillis === undefined ? 'waiting does not help' : `again in ${Number(retryAfterMillis)} ms`;
  return `denied: ${under}${cause}; ${wait}`;
}

/** @throws ClusterCommandError if the status cannot be read */
export async function showUser(
  userId: string,
  rule: string | undefined,
  options: UsersOptions,
): Promise<void> {
  const query = rule === undefined ? '' : `?rule=${encodeURIComponent(rule)}`;
  const url = new URL(`${pathOf(userId)}${query}`, options.node);
  const body = answerOf(await askNode(url, ANSWER_MILLIS_MAX), options.node);
  if (options.json === true) return options.print(JSON.stringify(body));
  if (body['blocked'] === true) options.print(`blocked: everything is denied${untilEnd(body)}`);
  if (body['unmatched'] === true) options.print(`unmatched: ${NO_RULE}`);
  const limits = body['limits'] as readonly NodeBody[];
  const rows = limits.map(({ rule: id, remaining, limit, windowMillis, resetMillis }) =>
    [id, remaining, limit, `${String(windowMillis)} ms`, `${String(resetMillis)} ms`].map(String),
  );
  for (const line of textTable([['rule', 'remaining', 'limit', 'window', 'all free in'], ...rows]))
    options.print(line);
  const restored = limits.filter(({ restoredMillis }) => restoredMillis !== undefined);
  for (const { rule: id, restoredMillis } of restored)
    options.print(
      `${String(id)}: the cluster was restored, and denies all requests for ${String(restoredMillis)} ms more`,
    );
}

const CHANGES = {
  block: { method: 'PUT', path: 'block', said: 'is blocked: everything is denied' },
  unblock: { method: 'DELETE', path: 'block', said: 'is not blocked' },
  reset: { method: 'POST', path: 'reset', said: 'is reset: its grants are no longer counted' },
} as const;
/** The actions of an operator on a key. */
export type UserChange = keyof typeof CHANGES;

/**
 * The time until a block ends, in words. Both times are group time, which can be behind the wall clock after an outage.
 */
function untilEnd({ blockedUntilMillis, decided }: NodeBody): string {
  if (blockedUntilMillis === undefined) return '';
  const { timeMillis } = decided as { readonly timeMillis: number };
  return ` for ${Number(blockedUntilMillis) - timeMillis} ms more`;
}

/** A change of a key. */
export interface WantedChange {
  readonly change: UserChange;
  /** How long a block lasts, in milliseconds. Absent: until an operator ends it. */
  readonly durationMillis?: number | undefined;
}

/** @throws ClusterCommandError `unfinished` if the change may have been made */
export async function changeUser(
  userId: string,
  { change, durationMillis }: WantedChange,
  options: UsersOptions,
): Promise<void> {
  const { method, path, said } = CHANGES[change];
  const url = new URL(`${pathOf(userId)}/${path}`, options.node);
  const sent = durationMillis === undefined ? { method } : { ...posted({ durationMillis }), method };
  const body = answerOfChange(await askNode(url, ANSWER_MILLIS_MAX, sent), options.node);
  options.print(options.json === true ? JSON.stringify(body) : `${userId} ${said}${untilEnd(body)}`);
}

/** @throws ClusterCommandError `unfinished` if the value may have been set */
export async function setUsed(
  userId: string,
  wanted: { readonly rule: string; readonly used: number },
  options: UsersOptions,
): Promise<void> {
  const url = new URL(`${pathOf(userId)}/used`, options.node);
  const sent = { ...posted(wanted), method: 'PUT' };
  const body = answerOfChange(await askNode(url, ANSWER_MILLIS_MAX, sent), options.node);
  options.print(
    options.json === true ? JSON.stringify(body) : `${userId} has used ${wanted.used} by rule ${wanted.rule}`,
  );
}

/** @throws ClusterCommandError, also if the request id has no grant */
export async function refundUser(userId: string, requestId: string, options: UsersOptions): Promise<void> {
  const asked = isKey(userId)
    ? { path: '/v1/refunds', body: { requestId, descriptors: Object.fromEntries(descriptorsIn(userId)) } }
    : { path: `${pathOf(userId)}/refunds`, body: { requestId } };
  const sent = posted(asked.body);
  const body = answerOfChange(
    await askNode(new URL(asked.path, options.node), ANSWER_MILLIS_MAX, sent),
    options.node,
  );
  options.print(
    options.json === true
      ? JSON.stringify(body)
      : `given back: ${String(body['cost'])} by rule ${String(body['rule'])}`,
  );
}

function pathOf(id: string): string {
  return `/v1/${isKey(id) ? 'keys' : 'users'}/${encodeURIComponent(id)}`;
}

/** A user whose id contains `=` is named by its key, such as `user=a=b`. */
function isKey(id: string): boolean {
  return id === GLOBAL_KEY || id.includes('=');
}

function posted(body: object): Sent {
  return { method: 'POST', contentType: 'application/json', body: JSON.stringify(body) };
}
