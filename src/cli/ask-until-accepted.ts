/** Asks a node for a change of its cluster again and again, until group 0 has decided: a repetition changes nothing. */
import { setTimeout as delay } from 'node:timers/promises';
import { askNode, ClusterCommandError, messageOf, type Sent } from './ask-node.ts';

export interface Accepting {
  readonly url: URL;
  readonly sent: Sent;
  /** By `performance.now()`. */
  readonly deadlineMillis: number;
  /** What group 0 does with it, for people: `not accepted yet`. */
  readonly verb: 'accepted' | 'decided';
  /** No node answers there. @param message why */
  readonly unreachable: (message: string) => ClusterCommandError;
  readonly say: (line: string) => void;
}

const AGAIN_MILLIS = 500;
/** For one answer, which may wait for the log. */
const CHANGE_MILLIS_MAX = 10_000;

/** @throws ClusterCommandError if it is refused, nobody could be asked, or there was no answer in time */
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
