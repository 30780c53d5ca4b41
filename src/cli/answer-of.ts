/**
 * Turns the response of a node into the body that a command needs, or into an error with the same words in all
 * commands.
 */
import { ClusterCommandError, messageOf, type NodeBody, type NodeResponse } from './ask-node.ts';

/**
 * Returns the body of a successful response.
 *
 * @param node the URL of the node, for messages
 * @throws ClusterCommandError if the request failed: `unreachable` if the node does not answer or cannot decide now
 */
export function answerOf({ status, body, isUnreachable }: NodeResponse, node: string): NodeBody {
  if (status >= 200 && status <= 299) return body;
  const message = messageIn({ status, body });
  if (isUnreachable === true) throw noNodeAt(node, message);
  if (status === 0 || status === 503)
    throw new ClusterCommandError(`${node} cannot answer: ${message}; try again`, 'unreachable');
  throw new ClusterCommandError(`${node} refuses: ${message}`);
}

/**
 * Returns the body of a successful change. Unlike after a read, a failed change may have been made.
 *
 * @param advice what to do if it is not known whether the change was made
 * @throws ClusterCommandError `unfinished` if the change may have been made
 */
export function answerOfChange(
  answer: NodeResponse,
  node: string,
  advice = 'check the current state before you try again',
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

/** Returns the error for an address at which no node listens. */
export function noNodeAt(node: string, message: string): ClusterCommandError {
  return new ClusterCommandError(
    `no node listens at ${node} (${message}): give the address of a running node with --node, or the directory of its cluster with --data`,
    'unreachable',
  );
}

/** A node that was asked without success, and the reason. */
export interface Failed {
  readonly url: string;
  readonly problem: string;
}

/**
 * Returns the error after several nodes were asked without success. Reasons that are equal are printed once.
 *
 * @param isRefused true if a node answered with a refusal, which already says what to do
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
