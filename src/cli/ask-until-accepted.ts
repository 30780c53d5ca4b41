/** Sends a change to a node again and again until group 0 has decided. Sending it twice does no harm. */
import { setTimeout as delay } from 'node:timers/promises';
import { askNode, ClusterCommandError, messageOf, type Sent } from './ask-node.ts';

/** A change, and how long to try. */
export interface Accepting {
  readonly url: URL;
  readonly sent: Sent;
  /** A time of `performance.now()`. */
  readonly deadlineMillis: number;
  /** What group 0 does with the change, for messages such as `not accepted yet`. */
  readonly verb: 'accepted' | 'decided';
  /** Makes the error for an address at which no node listens. @param message the reason */
  readonly unreachable: (message: string) => ClusterCommandError;
  readonly say: (line: string) => void;
}

const AGAIN_MILLIS = 500;
/** Longest time for one answer. The node may wait for its log. */
const CHANGE_MILLIS_MAX = 10_000;

/**
 * Returns when group 0 has decided.
 *
 * @throws ClusterCommandError if the change is refused, no node could be asked, or there was no answer in time
 */
export async function askUntilAccepted(init: Accepting): Promise<void> {
  const { url, sent, deadlineMillis, verb, unreachable, say } = init;
  for (;;) {
    const { status, body, isUnreachable } = await askNode(url, CHANGE_MILLIS_MAX, sent);
    if (status === 200) return;
    const message = messageOf(body) ?? `status ${status}`;
    if (isUnreachable === true) throw unreachable(message);
    if (status !== 0 && status !== 503) throw new ClusterCommandError(`${url.origin}: ${message}`);
    if (performance.now() >= deadlineMillis)
      throw new ClusterCommandError(`not ${verb} in time: ${message}; it may be asked again`, 'unfinished');
    say(`not ${verb} yet (${message}); asking again`);
    await delay(AGAIN_MILLIS);
  }
}
