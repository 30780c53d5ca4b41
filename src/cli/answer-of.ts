/** What a node answered to a command about users and customers: its body, or why there is none. */
import { ClusterCommandError, messageOf, type NodeBody, type NodeResponse } from './ask-node.ts';

/**
 * @param node a URL, for people
 * @throws ClusterCommandError unless it is 200: `unreachable` if nobody answers or can decide now
 */
export function answerOf({ status, body, isUnreachable }: NodeResponse, node: string): NodeBody {
  if (status === 200) return body;
  const message =
    messageOf(body) ?? (typeof body['detail'] === 'string' ? body['detail'] : `status ${status}`);
  if (isUnreachable === true)
    throw new ClusterCommandError(
      `no node listens at ${node} (${message}): give the address of a running node with --node`,
      'unreachable',
    );
  if (status === 0 || status === 503)
    throw new ClusterCommandError(`${node} tells nothing: ${message}; try again`, 'unreachable');
  throw new ClusterCommandError(message);
}

/** The same of a change. @throws ClusterCommandError `unfinished` if it may have been made */
export function answerOfChange(answer: NodeResponse, node: string): NodeBody {
  const { status, body, isUnreachable } = answer;
  const isInDoubt = (status === 0 && isUnreachable !== true) || (status === 503 && body['proposed'] === true);
  if (!isInDoubt) return answerOf(answer, node);
  const message =
    messageOf(body) ?? (typeof body['detail'] === 'string' ? body['detail'] : `status ${status}`);
  throw new ClusterCommandError(
    `it may have been changed: ${message}; look at it before you try again`,
    'unfinished',
  );
}
