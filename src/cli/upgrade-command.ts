/** `quorate upgrade`: shows how far a rolling upgrade is, and finishes it. It can be repeated at any time. */
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import { askNode, ClusterCommandError, messageOf, askUntilAccepted } from './ask-node.ts';
import { textTable } from './text-table.ts';
import { type UpgradeProgress, upgradeProgress } from './cluster-health.ts';

/** Which node to ask, and how to print. */
export interface UpgradeStatusInit {
  /** The URL of any upgraded node of the cluster. */
  readonly node: string;
  readonly json?: true;
  readonly print: (line: string) => void;
}

/** How long to wait for the end of the upgrade. */
export interface UpgradeFinishInit extends UpgradeStatusInit {
  readonly timeoutMillis: number;
}

const STATUS_MILLIS_MAX = 2_000;

/** @throws ClusterCommandError if the node does not report the state of its cluster */
export async function showUpgrade({
  node,
  json,
  print,
}: UpgradeStatusInit): Promise<'finished' | 'unfinished'> {
  const { report, progress } = await reportOf(node);
  const { version, target, isFinished, text } = progress;
  const nodes = report.nodes.map(({ id, up, speaks, release }) => ({
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

/** @throws ClusterCommandError if it is refused, no node could be asked, or it was not decided in time */
export async function finishUpgrade(init: UpgradeFinishInit): Promise<void> {
  const { node, timeoutMillis, json, print } = init;
  const say = json === true ? (): void => undefined : print;
  const deadlineMillis = performance.now() + timeoutMillis;
  const { progress } = await reportOf(node);
  const { target: version } = progress;
  const url = new URL('/v1/cluster/version', node);
  await askUntilAccepted({
    url,
    sent: { method: 'PUT', contentType: 'application/json', body: JSON.stringify({ version }) },
    deadlineMillis,
    verb: 'decided',
    unreachable: (message) =>
      new ClusterCommandError(
        `${url.origin} no longer answers (${message}), and may have made the change: run the command again, at any node, until it prints done; do not start nodes of the older version meanwhile`,
        'unfinished',
      ),
    say,
  });
  if (json === true) print(JSON.stringify({ version, before: progress.version }));
  else if (progress.isFinished)
    print(`the cluster is at version ${version} already: there is nothing to finish`);
  else print(`done: the cluster is at version ${version}; nodes of older versions can no longer take part`);
}

async function reportOf(node: string): Promise<{ report: ClusterReport; progress: UpgradeProgress }> {
  const url = new URL('/v1/cluster', node);
  const { status, body, isUnreachable } = await askNode(url, STATUS_MILLIS_MAX);
  if (status !== 200 || !isClusterReport(body)) {
    const message = messageOf(body) ?? `status ${status}`;
    throw new ClusterCommandError(
      `${url.origin} does not report the state of the cluster (${message}): give the address of a running node with --node`,
      isUnreachable === true || status === 0 ? 'unreachable' : 'refused',
    );
  }
  const progress = upgradeProgress(body);
  if (progress !== undefined) return { report: body, progress };
  throw new ClusterCommandError(
    `the node at ${url.origin} knows nothing of its cluster yet: try again, or name another node with --node`,
    'unfinished',
  );
}
