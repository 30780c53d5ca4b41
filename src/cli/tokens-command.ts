/** `quorate tokens`: creates, lists and revokes tokens of a running cluster. It stores no token. */
import type { TokenAsked } from '../api/token.ts';
import { answerOf, answerOfChange } from './answer-of.ts';
import { askNode, type NodeBody, type Sent } from './ask-node.ts';

/** Longest time for an answer. The node waits some seconds for the others. */
const ANSWER_MILLIS_MAX = 30_000;
const PATH = '/v1/tokens';

/** Which node to ask, and how to print. */
export interface TokensCommandOptions {
  /** The URL of a node. */
  readonly node: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** `pending`: it is done, but some nodes do not know it yet. */
export type TokensOutcome = 'done' | 'pending';

/** @throws ClusterCommandError `unfinished` if a token may exist that nobody has seen */
export async function createToken(
  asked: TokenAsked,
  { node, json, print }: TokensCommandOptions,
): Promise<TokensOutcome> {
  const sent = { method: 'POST', contentType: 'application/json', body: JSON.stringify(asked) };
  const body = await changing(new URL(PATH, node), sent);
  const { id, role, token } = body;
  if (json === true) print(JSON.stringify(body, null, 2));
  else {
    print(`token ${String(id)} of role ${String(role)}; keep it now, it is not shown again:`);
    print(String(token));
  }
  return outcomeOf(body, { json, print });
}

/** @throws ClusterCommandError */
export async function listTokens({ node, json, print }: TokensCommandOptions): Promise<void> {
  const url = new URL(PATH, node);
  const body = answerOf(await askNode(url, ANSWER_MILLIS_MAX), url.origin);
  if (json === true) {
    print(JSON.stringify(body, null, 2));
    return;
  }
  const tokens = Array.isArray(body['tokens']) ? (body['tokens'] as NodeBody[]) : [];
  if (tokens.length === 0) print('there are no tokens: anybody who reaches a node can use it');
  for (const { id, role, name, createdMillis, configured } of tokens) {
    const made =
      typeof createdMillis === 'number' ? new Date(createdMillis).toISOString() : 'at unknown time';
    const where = configured === true ? ', in cluster.json' : '';
    print(`${String(id)}  ${String(role).padEnd(6)}  ${String(name)} (made ${made}${where})`);
  }
}

/**
 * Revokes a token.
 *
 * @param isOpenAllowed also revoke the last token of role admin, which opens the cluster to everybody
 * @throws ClusterCommandError
 */
export async function revokeToken(
  id: string,
  { isOpenAllowed, node, json, print }: TokensCommandOptions & { readonly isOpenAllowed: boolean },
): Promise<TokensOutcome> {
  const url = new URL(`${PATH}/${encodeURIComponent(id)}${isOpenAllowed ? '?open=true' : ''}`, node);
  const body = await changing(url, { method: 'DELETE' });
  if (json === true) print(JSON.stringify(body, null, 2));
  else print(`token ${id} is revoked`);
  return outcomeOf(body, { json, print });
}

async function changing(url: URL, sent: Sent): Promise<NodeBody> {
  const answer = await askNode(url, ANSWER_MILLIS_MAX, sent);
  return answerOfChange(answer, url.origin, 'see with `quorate tokens list` before you try again');
}

function outcomeOf(
  { pending }: NodeBody,
  { json, print }: { readonly json: true | undefined; readonly print: (line: string) => void },
): TokensOutcome {
  if (!Array.isArray(pending) || pending.length === 0) return 'done';
  if (json !== true)
    print(`node ${pending.join(', ')} has not confirmed yet; it will learn of it from the other nodes`);
  return 'pending';
}
