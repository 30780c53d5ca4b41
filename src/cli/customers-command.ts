/** Shows, changes and deletes the settings of one customer in a running cluster, over HTTP at one of its nodes. */
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, ClusterCommandError, messageOf, type NodeBody, type NodeResponse } from './ask-node.ts';

const ANSWER_MILLIS_MAX = 10_000;

/** Which node to ask, and how to print. */
export interface CustomersOptions {
  /** The URL of a node. */
  readonly node: string;
  /** Only `delete` prints text by default. Other output is always JSON. */
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** The changes to a customer. Absent values stay as they are. */
export interface CustomerTerms {
  /** An empty text removes the tier. */
  readonly tier?: string;
  /** Replaces all overrides. */
  readonly overrides?: readonly { readonly rule: string; readonly limit: number; readonly burst?: number }[];
  readonly blocked?: boolean;
  /** How long the block lasts, in milliseconds. Absent: until an operator ends it. */
  readonly durationMillis?: number;
}

/** @throws ClusterCommandError, also if there are no settings for the customer */
export async function showCustomer(id: string, options: CustomersOptions): Promise<void> {
  options.print(shown(answerOf(await askNode(urlOf(id, options), ANSWER_MILLIS_MAX), options.node)));
}

/**
 * Changes a customer if nobody else has changed it since it was read here.
 *
 * @throws ClusterCommandError `unfinished` if the change may have been made
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
  if (overrides === undefined && fieldOf(answer)?.startsWith('overrides') === true)
    throw new ClusterCommandError(
      `${options.node} refuses: ${messageOf(answer.body)}. The record of ${id} has this override from before: ` +
        'take all its overrides away with --no-overrides, or state those that remain with --override',
    );
  options.print(shown(answerOfChange(answer, options.node)));
}

/** Deletes all settings of a customer. @throws ClusterCommandError `unfinished` if they may have been deleted */
export async function forgetCustomer(id: string, options: CustomersOptions): Promise<void> {
  const answer = await askNode(urlOf(id, options), ANSWER_MILLIS_MAX, { method: 'DELETE' });
  const body = answerOfChange(answer, options.node);
  options.print(options.json === true ? shown(body) : `all settings of customer ${id} are deleted`);
}

function urlOf(id: string, { node }: CustomersOptions): URL {
  return new URL(`/v1/customers/${encodeURIComponent(id)}`, node);
}

function isUnknown({ status, body }: NodeResponse): boolean {
  return status === 404 && errorIn(body)['type'] === 'unknown_customer';
}

/** The field that a refusal names. */
function fieldOf({ status, body }: NodeResponse): string | undefined {
  const { field } = errorIn(body);
  return status === 400 && typeof field === 'string' ? field : undefined;
}

function errorIn({ error }: NodeBody): NodeBody {
  return typeof error === 'object' && error !== null ? (error as NodeBody) : {};
}

/** The body as JSON text, without the receipt. */
function shown(body: NodeBody): string {
  return JSON.stringify({ ...body, decided: undefined }, null, 2);
}
