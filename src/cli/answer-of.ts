/** What a node answered to a command: its body, or why there is none, in the same words for all commands. */
import { ClusterCommandError, messageOf, type NodeBody, type NodeResponse } from './ask-node.ts';

/**
 * @param node a URL, for people
 * @throws ClusterCommandError unless it is done: `unreachable` if nobody answers or can decide now
 */
export function answerOf({ status, body, isUnreachable }: NodeResponse, node: string): NodeBody {
  if (status >= 200 && status <= 299) return body;
  const message = messageIn({ status, body });
  if (isUnreachable === true) throw noNodeAt(node, message);
  if (status === 0 || status === 503)
    throw new ClusterCommandError(`${node} gives no answer: ${message}; try again`, 'unreachable');
  throw new ClusterCommandError(`${node} refuses: ${message}`);
}

/**
 * The same of a change.
 *
 * @param advice what to do where it is in doubt
 * @throws ClusterCommandError `unfinished` if it may have been made
 */
export function answerOfChange(
  answer: NodeResponse,
  node: string,
  advice = 'see what is so before you try again',
): NodeBody {
  const { status, body, isUnreachable } = answer;
  const message = messageIn(answer);
  const isProposed = body['proposed'] === true || body['reason'] === 'unknownOutcome';
  if ((status === 0 && isUnreachable !== true) || (status === 503 && isProposed))
    throw new ClusterCommandError(`${node}: it may have been changed: ${message}; ${advice}`, 'unfinished');
  if (status === 503)
    throw new ClusterCommandError(`${node}: ${message}; nothing was changed`, 'unreachable');
  return answerOf(answer, node);
}

export function noNodeAt(node: string, message: string): ClusterCommandError {
  return new ClusterCommandError(
    `no node listens at ${node} (${message}): give the address of a running node with --node, or the directory of its cluster with --data`,
    'unreachable',
  );
}

/** A node that was asked, and what came of it. */
export interface Failed {
  readonly url: string;
  readonly problem: string;
}

/**
 * Several were asked. What is said of one alike is said once.
 *
 * @param isRefused one of them answers, and says itself what to do
 */
export function noAnswer(what: string, failed: readonly Failed[], isRefused: boolean): ClusterCommandError {
  const urls = new Map<string, string[]>();
  for (const { url, problem } of failed) {
    const why = problem.replace(`${url} `, '');
    urls.set(why, [...(urls.get(why) ?? []), url]);
  }
  const asked = [...urls].map(([problem, those]) => `${those.join(', ')}: ${problem}`).join('; ');
  return isRefused
    ? new ClusterCommandError(`${what} (${asked})`)
    : new ClusterCommandError(`${what} (${asked}): start one, or name another with --node`, 'unreachable');
}

function messageIn({ status, body }: Pick<NodeResponse, 'status' | 'body'>): string {
  const { detail } = body;
  return messageOf(body) ?? (typeof detail === 'string' ? detail : `status ${status}`);
}
