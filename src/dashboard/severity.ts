/** Judges the state of the cluster: how bad it is, what happened in one sentence, and what to do. Pure. */
import type { ReportedNode } from '../api/cluster-report.ts';
import type { LiveCluster } from '../api/monitoring.ts';
import type { Feed } from './feed.ts';
import { clockTime, counted, listed, nodesInWords, percent, startOf } from './words.ts';

/**
 * How bad the state is.
 *
 * - `well`: nothing to report
 * - `attention`: nothing is broken, but something is unusual: moves, a bad clock, or most requests are denied
 * - `nodeDown`: a node is down, and the cluster still serves
 * - `noLeader`: some partitions have no leader or deny everything after a restore
 * - `outage`: no request is served, or the node of this page does not answer
 */
export type Severity = 'well' | 'attention' | 'nodeDown' | 'noLeader' | 'outage';

/** The judgement that the page shows at its top. */
export interface Verdict {
  readonly severity: Severity;
  /** The state of the cluster, in one sentence. */
  readonly what: string;
  /** The advice to the operator, in one sentence; empty if none is needed. */
  readonly action: string;
  /** Shell commands, to be run on the machine of a node. */
  readonly commands: readonly string[];
  /** Other nodes that were up in the last report, and may serve this page. */
  readonly elsewhere: readonly ReportedNode[];
}

/** If a larger fraction of decisions is denied, the state is not `well`. */
const DENIED_FRACTION_MAX = 0.5;
/** For more nodes than this, one command with a placeholder is shown. */
const COMMANDS_MAX = 3;
const PEEK = 'npx quorate doctor';

/** The fields of a feed that the judgement uses. */
export type Judged = Pick<Feed, 'status' | 'reason' | 'cluster' | 'heardMillis' | 'isAnswered'>;

/**
 * Judges the feed; undefined if nothing is known yet. The worst finding wins.
 *
 * @param deniedFraction denied fraction of the decisions of the last minutes, 0 to 1; undefined if there were none
 */
export function verdictOf(feed: Judged, deniedFraction: number | undefined): Verdict | undefined {
  const { status, cluster } = feed;
  if (cluster === undefined) return status === 'lost' ? lostAtOnce(feed) : undefined;
  if (status === 'lost') return feed.isAnswered ? notLive(feed, cluster) : lost(feed, cluster);
  return (
    ofLeaders(cluster) ??
    ofRestore(cluster) ??
    ofNodes(cluster) ??
    ofDenials(deniedFraction) ??
    ofClocks(cluster) ??
    ofMoves(cluster) ??
    well(cluster)
  );
}

/** Ids of the nodes that are down. */
function downIn({ nodes }: LiveCluster): number[] {
  return nodes.filter(({ up }) => !up).map(({ id }) => id);
}

function verdict(severity: Severity, what: string, more: Partial<Verdict> = {}): Verdict {
  return { severity, what: startOf(what), action: '', commands: [], elsewhere: [], ...more };
}

const START_ANY = 'npx quorate node <id>';

/** One command for each node, or one with a placeholder if there are many nodes. */
function startCommands(nodes: readonly number[]): string[] {
  return nodes.length > COMMANDS_MAX ? [START_ANY] : nodes.map((id) => `npx quorate node ${id}`);
}

function lostAtOnce({ reason, isAnswered }: Judged): Verdict {
  if (isAnswered)
    return verdict('attention', `Not live: ${reason}.`, {
      action: 'Wait: this page asks again by itself; or open another node.',
    });
  return verdict(
    'outage',
    `Not live: ${reason}. This page has heard nothing yet, and asks again by itself.`,
    {
      action: 'If no node of the cluster answers, start the nodes, each on its machine:',
      commands: [START_ANY],
    },
  );
}

/** The node answers, but refuses the stream. */
function notLive({ reason, heardMillis }: Judged, cluster: LiveCluster): Verdict {
  return verdict('attention', `Not live: ${reason}. This page is as of ${clockTime(heardMillis)}.`, {
    action: 'Open another node, or wait: this page asks again by itself.',
    elsewhere: othersUp(cluster),
  });
}

/** The node does not answer. The page cannot know whether others would, because it asks only its own node. */
function lost({ heardMillis }: Judged, cluster: LiveCluster): Verdict {
  const own = cluster.self.id;
  const elsewhere = othersUp(cluster);
  const since = clockTime(heardMillis);
  if (elsewhere.length === 0)
    return verdict(
      'outage',
      `Not live: total outage. No node answers since ${since}, and this page is old.`,
      {
        action: `Start ${nodesInWords(cluster.nodes.map(({ id }) => id))}, each on its machine:`,
        commands: startCommands(cluster.nodes.map(({ id }) => id)),
      },
    );
  const others = nodesInWords(elsewhere.map(({ id }) => id));
  return verdict('outage', `Not live: node ${own} does not answer since ${since}, and this page is old.`, {
    action: `Open ${others}, up until then. If none answers, the whole cluster is down: start the nodes, each on its machine:`,
    commands: startCommands(cluster.nodes.map(({ id }) => id)),
    elsewhere,
  });
}

function othersUp({ nodes, self }: LiveCluster): ReportedNode[] {
  return nodes.filter(({ id, up, http }) => up && http !== null && id !== self.id);
}

function ofLeaders(cluster: LiveCluster): Verdict | undefined {
  const leaderless = cluster.partitions.filter(({ leader }) => leader === 0);
  return leaderless.length === 0 ? undefined : withoutLeaders(cluster, leaderless, downIn(cluster));
}

function ofNodes(cluster: LiveCluster): Verdict | undefined {
  const down = downIn(cluster);
  if (down.length === 0) return undefined;
  const are = down.length === 1 ? 'is' : 'are';
  const them = down.length === 1 ? 'it, on its machine' : 'them, each on its machine';
  return verdict(
    'nodeDown',
    `${nodesInWords(down)} ${are} down, and the cluster still serves: every partition has a leader.`,
    { action: `Start ${them}, before another is lost:`, commands: startCommands(down) },
  );
}

function withoutLeaders(
  { partitions }: LiveCluster,
  leaderless: LiveCluster['partitions'],
  down: readonly number[],
): Verdict {
  const isAll = leaderless.length === partitions.length;
  const which = listed(leaderless.map(({ id }) => id));
  const have = leaderless.length === 1 ? 'has' : 'have';
  const fraction = percent(leaderless.length / partitions.length);
  const what = isAll
    ? 'Total outage: no partition has a leader, and every request is answered “unavailable”.'
    : `${leaderless.length} of ${partitions.length} partitions (${which}) ${have} no leader: requests for about ${fraction} of the keys are answered “unavailable”.`;
  if (down.length === 0)
    return verdict(isAll ? 'outage' : 'noLeader', what, {
      action: 'An election takes a second or two; if this lasts, find the cause:',
      commands: [PEEK],
    });
  const them = nodesInWords(down);
  return verdict(isAll ? 'outage' : 'noLeader', what, {
    action: `An election takes a second or two; if this lasts, too few copies are up: start ${them}, each on its machine:`,
    commands: startCommands(down),
  });
}

/** A cluster that denies most requests needs attention. */
function ofDenials(deniedFraction: number | undefined): Verdict | undefined {
  if (deniedFraction === undefined || deniedFraction <= DENIED_FRACTION_MAX) return undefined;
  return verdict(
    'attention',
    `The cluster is up, and denies most: ${percent(deniedFraction)} of its decisions.`,
    {
      action: 'The tables below show the keys and rules. If a limit is too low, change it on the page Rules.',
    },
  );
}

function ofRestore({ partitions }: LiveCluster): Verdict | undefined {
  const restored = partitions.filter(({ restoredMillis = 0 }) => restoredMillis > 0);
  if (restored.length === 0) return undefined;
  const millis = Math.max(...restored.map(({ restoredMillis = 0 }) => restoredMillis));
  const deny = counted(restored.length, 'restored partition denies', 'restored partitions deny');
  return verdict('noLeader', `${deny} every request, for ${Math.ceil(millis / 1_000)} s more at most.`, {
    action: 'Wait: by then, all grants that the backup may lack have left their windows.',
  });
}

function ofClocks({ nodes }: LiveCluster): Verdict | undefined {
  const unfit = nodes.filter(({ clock }) => clock !== null && clock !== 'fit').map(({ id }) => id);
  if (unfit.length === 0) return undefined;
  const [run, lead] = unfit.length === 1 ? ['clock runs', 'it leads'] : ['clocks run', 'they lead'];
  return verdict(
    'attention',
    `The ${run} too fast or too slow: ${nodesInWords(unfit)}, and ${lead} nothing.`,
    {
      action: 'Repair the time source of the machine; then check again:',
      commands: [PEEK],
    },
  );
}

function ofMoves({ partitions }: LiveCluster): Verdict | undefined {
  const moving = partitions.filter(({ placed }) => !placed).length;
  if (moving === 0) return undefined;
  const are = counted(moving, 'partition moves', 'partitions move');
  return verdict('attention', `${are} to other nodes, and every partition has a leader.`, {
    action: 'Nothing to do: leave the nodes running until it is done.',
  });
}

function well({ nodes }: LiveCluster): Verdict {
  return verdict('well', `All ${counted(nodes.length, 'node')} are up, and every partition has a leader.`);
}
