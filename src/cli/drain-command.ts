/**
 * `quorate drain`: makes a node hand over its leadership and stop taking requests, or undoes that, and waits until it
 * is done. It can be repeated at any time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isClusterReport } from '../api/cluster-report.ts';
import { noNodeAt } from './answer-of.ts';
import { askNode, askUntilAccepted, ClusterCommandError, messageOf } from './ask-node.ts';

/** The node to drain, and how long to wait. */
export interface DrainCommandInit {
  /** The URL of any node of the cluster. */
  readonly node: string;
  /** The id of the node to drain. */
  readonly id: number;
  readonly isDraining: boolean;
  /** Wait until the node leads nothing, or with `--undo` until it takes requests again. */
  readonly wait: boolean;
  readonly timeoutMillis: number;
  readonly json?: true;
  readonly print: (line: string) => void;
}

const AGAIN_MILLIS = 500;
const STATUS_MILLIS_MAX = 2_000;

/** The state of the node, as reported by itself and by the node that was asked. */
interface Progress {
  /** Number of groups that it leads. Undefined: no node could be asked. */
  readonly leads: number | undefined;
  readonly isDone: boolean;
  /** The state cannot be seen from here, for a reason that waiting does not change. */
  readonly isHidden?: true;
  readonly text: string;
}

/**
 * Returns `pending` if the request was accepted but is not done yet.
 *
 * @throws ClusterCommandError if it was refused, or no node could be asked
 */
export async function drainNode(init: DrainCommandInit): Promise<'done' | 'pending'> {
  const { node, id, isDraining, wait, timeoutMillis, json, print } = init;
  const say = json === true ? (): void => undefined : print;
  const deadline = performance.now() + timeoutMillis;
  await accepted(init, deadline, say);
  say(`${node} has accepted: node ${id} will ${isDraining ? 'be drained' : 'take requests again'}`);
  let progress = await visibleProgressOf(init);
  let said = '';
  while (wait && !progress.isDone && progress.isHidden === undefined && performance.now() < deadline) {
    if (progress.text !== said) say(progress.text);
    said = progress.text;
    await delay(AGAIN_MILLIS);
    progress = await visibleProgressOf(init);
  }
  const { leads, isDone, isHidden, text } = progress;
  if (json === true)
    print(JSON.stringify({ node: id, draining: isDraining, leads: leads ?? null, done: isDone }));
  else if (isHidden === true) print(`accepted; cannot see whether node ${id} is done: ${text}`);
  else print(isDone ? `done: ${text}` : `not done yet: ${text}; the cluster continues without this command`);
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

/** The change is accepted already, so a certificate that is not trusted is no refusal. */
async function visibleProgressOf(init: DrainCommandInit): Promise<Progress> {
  try {
    return await progressOf(init);
  } catch (error) {
    if (!(error instanceof ClusterCommandError)) throw error;
    return { leads: undefined, isDone: false, isHidden: true, text: error.message };
  }
}

async function progressOf({ node: asked, id, isDraining }: DrainCommandInit): Promise<Progress> {
  const { status, body } = await askNode(new URL('/v1/cluster', asked), STATUS_MILLIS_MAX);
  if (status !== 200 || !isClusterReport(body)) {
    const text = `${asked} does not report the state of the cluster: ${messageOf(body) ?? `status ${status}`}`;
    return { leads: undefined, isDone: false, text };
  }
  const node = body.nodes.find((each) => each.id === id);
  const known = body.partitions.filter(({ leader }) => leader === id).length;
  if (node === undefined) return { leads: known, isDone: true, text: `node ${id} was removed` };
  const { http, up } = node;
  if (!up) return { leads: known, isDone: isDraining && known === 0, text: `node ${id} does not run` };
  if (http === null) return { leads: known, isDone: false, text: `the address of node ${id} is not known` };
  const ready = new URL('/readyz', `${new URL(asked).protocol}//${http}`);
  const { body: said } = await askNode(ready, STATUS_MILLIS_MAX);
  const { status: state, leads: own } = said;
  // The node itself counts group 0 too. Either number may be old, so take the larger one.
  const leads = Math.max(known, typeof own === 'number' ? own : 0);
  const text = `node ${id} leads ${leads} groups, and says: ${typeof state === 'string' ? state : (messageOf(said) ?? 'nothing')}`;
  const isDone = isDraining ? state === 'draining' && leads === 0 : state === 'ready';
  return { leads, isDone, text };
}
