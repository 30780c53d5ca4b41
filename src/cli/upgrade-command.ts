/**
 * `quorate upgrade`: shows how far a rolling upgrade is, and finishes it. A repetition changes nothing, so it may be asked again
 * whatever became of it before.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import { askNode, ClusterCommandError, messageOf } from './ask-node.ts';
import { textTable } from './text-table.ts';
import { type UpgradeProgress, upgradeProgress } from './upgrade-progress.ts';

export interface UpgradeStatusInit {
  /** The URL of any node of the cluster that was upgraded. */
  readonly via: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

export interface UpgradeFinishInit extends UpgradeStatusInit {
  readonly timeoutMillis: number;
}

const AGAIN_MILLIS = 500;
/** For an answer to the change itself, which may wait for the log. */
const CHANGE_MILLIS_MAX = 10_000;
const STATUS_MILLIS_MAX = 2_000;

/** @throws ClusterCommandError if the node does not tell how its cluster is */
export async function showUpgrade({
  via,
  json,
  print,
}: UpgradeStatusInit): Promise<'finished' | 'unfinished'> {
  const { report, progress } = await look(via);
  const { version, target, isFinished, text } = progress;
  const nodes = report.nodes.map(({ id, up, speaks = null, release = null }) => ({
    id,
    up,
    speaks,
    release,
  }));
  if (json === true) print(JSON.stringify({ version, target, finished: isFinished, nodes, text }));
  else {
    const rows = nodes.map(({ id, up, speaks, release }) => [
      String(id),
      up ? 'up' : 'down',
      String(speaks ?? '?'),
      release ?? '?',
    ]);
    for (const line of textTable([['node', 'state', 'speaks', 'release'], ...rows])) print(line);
    print(text);
  }
  return isFinished ? 'finished' : 'unfinished';
}

/** @throws ClusterCommandError if it is refused, nobody could be asked, or it was not decided in time */
export async function finishUpgrade(init: UpgradeFinishInit): Promise<void> {
  const { via, timeoutMillis, json, print } = init;
  const say = json === true ? (): void => undefined : print;
  const deadline = performance.now() + timeoutMillis;
  const { progress } = await look(via);
  const version = await raised(via, progress, { deadline, say });
  if (json === true) print(JSON.stringify({ version, before: progress.version }));
  else if (progress.isFinished)
    print(`the cluster is at version ${version} already: there is nothing to finish`);
  else print(`done: the cluster is at version ${version}; nodes of a version before are spoken with no more`);
}

async function look(via: string): Promise<{ report: ClusterReport; progress: UpgradeProgress }> {
  const url = new URL('/v1/cluster', via);
  const { status, body, isUnreachable } = await askNode(url, STATUS_MILLIS_MAX);
  if (status !== 200 || !isClusterReport(body)) {
    const message = messageOf(body) ?? `status ${status}`;
    throw new ClusterCommandError(
      `${url.origin} does not tell how the cluster is (${message}): give the address of a running node with --via`,
      isUnreachable === true || status === 0 ? 'unreachable' : 'refused',
    );
  }
  const progress = upgradeProgress(body);
  if (progress !== undefined) return { report: body, progress };
  throw new ClusterCommandError(
    `the node at ${url.origin} knows no versions: it starts just now, or is of the version before; give another one with --via`,
    'unfinished',
  );
}

async function raised(
  via: string,
  { target }: UpgradeProgress,
  { deadline, say }: { readonly deadline: number; readonly say: (line: string) => void },
): Promise<number> {
  const url = new URL('/v1/cluster/version', via);
  const sent = { method: 'PUT', contentType: 'application/json', body: JSON.stringify({ version: target }) };
  for (;;) {
    const { status, body, isUnreachable } = await askNode(url, CHANGE_MILLIS_MAX, sent);
    if (status === 200) return target;
    const message = messageOf(body) ?? `status ${status}`;
    if (isUnreachable === true)
      throw new ClusterCommandError(
        `${url.origin} answers no more (${message}), and may have been asked already: ask again, at any node, until it says done; start no node of the version before meanwhile`,
        'unfinished',
      );
    if (status !== 0 && status !== 503) throw new ClusterCommandError(`${url.origin}: ${message}`);
    if (performance.now() >= deadline)
      throw new ClusterCommandError(`not decided in time: ${message}; it may be asked again`, 'unfinished');
    say(`not decided yet (${message}); asking again`);
    await delay(AGAIN_MILLIS);
  }
}
