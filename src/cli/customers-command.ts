/** What operators say of one customer of a running cluster: shown, changed, and taken away, over HTTP at one of its nodes. */
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, type NodeBody, type NodeResponse } from './ask-node.ts';

const ANSWER_MILLIS_MAX = 10_000;

export interface CustomersOptions {
  /** A URL. */
  readonly node: string;
  /** What is shown is JSON anyway, but for what was taken away. */
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** What is not said stays as it is. */
export interface CustomerTerms {
  /** '' takes it away. */
  readonly tier?: string;
  /** In place of all that there are. */
  readonly overrides?: readonly { readonly rule: string; readonly limit: number; readonly burst?: number }[];
  readonly blocked?: boolean;
  /** How long the block lasts, in milliseconds. Absent: until an operator takes it back. */
  readonly durationMillis?: number;
}

/** @throws ClusterCommandError also where nothing is known of the customer */
export async function showCustomer(id: string, options: CustomersOptions): Promise<void> {
  options.print(shown(answerOf(await askNode(urlOf(id, options), ANSWER_MILLIS_MAX), options.node)));
}

/**
 * Changes what is said, of the version that was read just before.
 *
 * @throws ClusterCommandError `unfinished` if it may have been changed
 */
export async function changeCustomer(
  id: string,
  { tier, overrides, blocked, durationMillis }: CustomerTerms,
  options: CustomersOptions,
): Promise<void> {
  const url = urlOf(id, options);
  const read = await askNode(url, ANSWER_MILLIS_MAX);
  const before: NodeBody = isUnknown(read) ? { version: 0 } : answerOf(read, options.node);
  const wanted = {
    tier: (tier ?? before['tier']) || undefined,
    overrides: overrides ?? before['overrides'],
    blocked,
    durationMillis,
  };
  const answer = await askNode(url, ANSWER_MILLIS_MAX, {
    method: 'PUT',
    contentType: 'application/json',
    headers: { 'if-match': `"${String(before['version'])}"` },
    body: JSON.stringify(wanted),
  });
  options.print(shown(answerOfChange(answer, options.node)));
}

/** @throws ClusterCommandError `unfinished` if it may have been taken away */
export async function forgetCustomer(id: string, options: CustomersOptions): Promise<void> {
  const answer = await askNode(urlOf(id, options), ANSWER_MILLIS_MAX, { method: 'DELETE' });
  const body = answerOfChange(answer, options.node);
  options.print(options.json === true ? shown(body) : `nothing is known of customer ${id} any more`);
}

function urlOf(id: string, { node }: CustomersOptions): URL {
  return new URL(`/v1/customers/${encodeURIComponent(id)}`, node);
}

function isUnknown({ status, body }: NodeResponse): boolean {
  const { error } = body;
  return (
    status === 404 &&
    typeof error === 'object' &&
    error !== null &&
    'type' in error &&
    error.type === 'unknown_customer'
  );
}

/** Without the receipt. */
function shown(body: NodeBody): string {
  return JSON.stringify({ ...body, decided: undefined }, null, 2);
}
