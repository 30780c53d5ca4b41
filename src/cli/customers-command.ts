/** What operators say of one customer of a running cluster: shown, changed, and taken away, over HTTP at one of its nodes. */
import { askNode, ClusterCommandError, messageOf, type NodeBody, type NodeResponse } from './ask-node.ts';

const ANSWER_MILLIS_MAX = 10_000;

export interface CustomersOptions {
  /** A URL. */
  readonly node: string;
  readonly print: (line: string) => void;
}

/** What is not said stays as it is. */
export interface CustomerTerms {
  /** '' takes it away. */
  readonly tier?: string;
  /** In place of all that there are. */
  readonly overrides?: readonly { readonly rule: string; readonly limit: number; readonly burst?: number }[];
  readonly blocked?: boolean;
}

/** @throws ClusterCommandError also where nothing is known of the customer */
export async function showCustomer(id: string, options: CustomersOptions): Promise<void> {
  options.print(shown(known(await askNode(urlOf(id, options), ANSWER_MILLIS_MAX), options)));
}

/**
 * Changes what is said, of the version that was read just before.
 *
 * @throws ClusterCommandError `unfinished` if it may have been changed
 */
export async function changeCustomer(
  id: string,
  { tier, overrides, blocked }: CustomerTerms,
  options: CustomersOptions,
): Promise<void> {
  const url = urlOf(id, options);
  const read = await askNode(url, ANSWER_MILLIS_MAX);
  const before: NodeBody = isUnknown(read) ? { version: 0 } : known(read, options);
  const wanted = {
    tier: (tier ?? before['tier']) || undefined,
    overrides: overrides ?? before['overrides'],
    blocked,
  };
  const answer = await askNode(url, ANSWER_MILLIS_MAX, {
    method: 'PUT',
    contentType: 'application/json',
    headers: { 'if-match': `"${String(before['version'])}"` },
    body: JSON.stringify(wanted),
  });
  options.print(shown(changed(answer, options)));
}

/** @throws ClusterCommandError `unfinished` if it may have been taken away */
export async function forgetCustomer(id: string, options: CustomersOptions): Promise<void> {
  changed(await askNode(urlOf(id, options), ANSWER_MILLIS_MAX, { method: 'DELETE' }), options);
  options.print(`nothing is known of customer ${id} any more`);
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

function known({ status, body, isUnreachable }: NodeResponse, { node }: CustomersOptions): NodeBody {
  if (status === 200) return body;
  const message = messageOf(body) ?? `status ${status}`;
  if (isUnreachable === true)
    throw new ClusterCommandError(
      `no node listens at ${node} (${message}): give the address of a running node with --node`,
      'unreachable',
    );
  if (status === 0 || status === 503)
    throw new ClusterCommandError(`${node} tells nothing: ${message}; try again`, 'unreachable');
  throw new ClusterCommandError(message);
}

function changed(answer: NodeResponse, options: CustomersOptions): NodeBody {
  const { status, body, isUnreachable } = answer;
  const isInDoubt = (status === 0 && isUnreachable !== true) || (status === 503 && body['proposed'] === true);
  if (!isInDoubt) return known(answer, options);
  const message = messageOf(body) ?? `status ${status}`;
  throw new ClusterCommandError(
    `it may have been changed: ${message}; look at it before you try again`,
    'unfinished',
  );
}

/** Without the receipt. */
function shown(body: NodeBody): string {
  return JSON.stringify({ ...body, decided: undefined }, null, 2);
}
