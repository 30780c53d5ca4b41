/**
 * `quorate drain`: has a node of a running cluster hand over what it leads and take no requests, or ends that, and waits until it
 * is so. A repetition changes nothing, so it may be asked again whatever became of it before.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isClusterReport } from '../api/cluster-report.ts';
import { noNodeAt } from './answer-of.ts';
import { askNode, messageOf } from './ask-node.ts';
import { askUntilAccepted } from './ask-until-accepted.ts';

export interface DrainCommandInit {
  /** The URL of any node of the cluster. */
  readonly node: string;
  /** Of the node that is drained. */
  readonly id: number;
  readonly isDraining: boolean;
  /** Whether to wait until it leads nothing, or takes requests again. */
  readonly wait: boolean;
  readonly timeoutMillis: number;
  readonly json?: true;
  readonly print: (line: string) => void;
}

const AGAIN_MILLIS = 500;
const STATUS_MILLIS_MAX = 2_000;

/** What a node is doing, as it says itself and as the one that was asked knows. */
interface Progress {
  /** Groups that it leads; undefined: nobody could be asked. */
  readonly leads: number | undefined;
  readonly isDone: boolean;
  readonly text: string;
}

/** `pending`: it is accepted, and not done yet. @throws ClusterCommandError if it is refused, or nobody could be asked */
export async function drainNode(init: DrainCommandInit): Promise<'done' | 'pending'> {
  const { node, id, isDraining, wait, timeoutMillis, json, print } = init;
  const say = json === true ? (): void => undefined : print;
  const deadline = performance.now() + timeoutMillis;
  await accepted(init, deadline, say);
  say(`node ${id} is to ${isDraining ? 'be drained' : 'take requests again'}, as ${node} says`);
  let progress = await progressOf(init);
  let said = '';
  while (wait && !progress.isDone && performance.now() < deadline) {
    if (progress.text !== said) say(progress.text);
    said = progress.text;
    await delay(AGAIN_MILLIS);
    progress = await progressOf(init);
  }
  const { leads, isDone, text } = progress;
  if (json === true)
    print(JSON.stringify({ node: id, draining: isDraining, leads: leads ?? null, done: isDone }));
  else print(isDone ? `done: ${text}` : `not done yet: ${text}; it goes on by itself`);
  return isDone || !wait ? 'done' : 'pending';
}

async function accepted(
  { node, id, isDraining }: DrainCommandInit,
  deadlineMillis: number,
  say: (line: string) => void,
): Promise<void> {
  const url = new URL(`/v1/cluster/nodes/${id}/drain`, node);
  await askUntilAccepted({
    url,
    sent: { method: isDraining ? 'PUT' : 'DELETE' },
    deadlineMillis,
    verb: 'accepted',
    unreachable: (message) => noNodeAt(url.origin, message),
    say,
  });
}

async function progressOf({ node: asked, id, isDraining }: DrainCommandInit): Promise<Progress> {
  const { status, body } = await askNode(new URL('/v1/cluster', asked), STATUS_MILLIS_MAX);
  if (status !== 200 || !isClusterReport(body)) {
    const text = `${asked} does not say how the cluster is: ${messageOf(body) ?? `status ${status}`}`;
    return { leads: undefined, isDone: false, text };
  }
  const node = body.nodes.find((each) => each.id === id);
  const known = body.partitions.filter(({ leader }) => leader === id).length;
  if (node === undefined) return { leads: known, isDone: true, text: `node ${id} was removed` };
  const { http, up } = node;
  if (!up) return { leads: known, isDone: isDraining && known === 0, text: `node ${id} does not run` };
  if (http === null) return { leads: known, isDone: false, text: `where node ${id} answers is not known` };
  const ready = new URL('/readyz', `${new URL(asked).protocol}//${http}`);
  const { body: said } = await askNode(ready, STATUS_MILLIS_MAX);
  const { status: state, leads: own } = said;
  // It knows of group 0 as well, and both may be behind.
  const leads = Math.max(known, typeof own === 'number' ? own : 0);
  const text = `node ${id} leads ${leads} groups, and says: ${typeof state === 'string' ? state : (messageOf(said) ?? 'nothing')}`;
  const isDone = isDraining ? state === 'draining' && leads === 0 : state === 'ready';
  return { leads, isDone, text };
}
