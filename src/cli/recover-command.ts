/**
 * `quorate recover`: makes one surviving node the only voter of groups that lost their quorum. The node must be
 * stopped, and the operator must accept the losses.
 */
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import { type RecoveredGroup, recoverGroups } from '../backup/recover-groups.ts';
import { nodeDirectory, readCluster } from '../config/cluster-directory.ts';
import { factsOf } from '../config/cluster-facts.ts';
import { ConfigError } from '../config/config.ts';
import { NO_NODE } from '../../raft/types.ts';
import { openStore } from '../../storage/open-store.ts';
import { clusterOf } from './asked-cluster.ts';
import { askNode, ClusterCommandError, messageOf, type NodeResponse } from './ask-node.ts';
import { listenerUrl } from './node-fetch.ts';

/** The options of `quorate recover`. */
export interface RecoverOptions {
  readonly data: string;
  readonly id: number;
  readonly group?: number;
  readonly all?: true;
  /** The URL of the node to ask for leaders. Absent: the other nodes in cluster.json, any of which may be gone. */
  readonly node?: string;
  readonly ca?: string;
  readonly iAcceptOverGrants?: true;
  readonly json?: true;
}

const STATUS_MILLIS_MAX = 5_000;
const COST =
  'loses everything that only the lost nodes have, such as grants, blocks, and changes of rules and tokens; if one of ' +
  'them ever runs again, limits are exceeded. Destroy their disks first, then say --i-accept-over-grants';

/**
 * @throws ConfigError, ClusterCommandError, BackupError, and errors of the database, which is locked while the node
 *   runs
 */
export async function recover(
  options: RecoverOptions & { readonly print: (line: string) => void },
): Promise<void> {
  const { data, id, group, all, node, ca, json, print } = options;
  const trust = ca === undefined ? {} : { ca };
  if ((group === undefined) === (all === undefined))
    throw new ConfigError('--group', 'or --all must be given, and not both');
  if (options.iAcceptOverGrants !== true) throw new ConfigError('recover', COST);
  const config = await readCluster(data);
  if (config === undefined) throw new ConfigError(data, 'holds no cluster.json');
  const { urls } = await clusterOf(node === undefined ? { data, ...trust } : { node, ...trust });
  const own = config.nodes.filter((each) => each.id === id).map((each) => listenerUrl(each, config.tls));
  if (node === undefined)
    await refuseIfAnyLeads(
      urls.filter((url) => !own.includes(url)),
      group,
    );
  else await refuseIfLed(urls[0] ?? node, group);
  const directory = nodeDirectory(data, id);
  const founders = config.founders.map((founder) => founder.id);
  const store = await openStore(directory, { nodeId: id, facts: factsOf(config) });
  let recovered: readonly RecoveredGroup[];
  try {
    recovered = await recoverGroups({
      store,
      directory,
      node: id,
      founders,
      groups: group === undefined ? 'all' : [group],
      at: new Date().toISOString(),
    });
  } finally {
    await store.close();
  }
  if (json === true) return print(JSON.stringify({ node: id, recovered }));
  for (const { group: each, votersBefore, lastIndex, index, term } of recovered)
    print(
      `group ${each}: node ${id} alone, of ${votersBefore.join(', ')}; from entry ${index} on, in term ${term}, after ${lastIndex}`,
    );
  print('all requests are denied for a full window of each rule after this node starts');
  print(
    'now replace every lost node with `quorate nodes add --replace`: nothing is redundant until all have moved',
  );
}

/**
 * Refuses if a group has a leader, because it has a quorum then. A node that does not answer clearly may know of a
 * leader, so that is refused too.
 */
async function refuseIfLed(node: string, group: number | undefined): Promise<void> {
  const answer = await askNode(new URL('/v1/cluster', node), STATUS_MILLIS_MAX);
  if (!isReport(answer)) throw saysNothing(node, answer);
  refuseLed(node, answer.body, group);
}

/** Asks all nodes. A node that does not answer is lost, or another program has its port. */
async function refuseIfAnyLeads(urls: readonly string[], group: number | undefined): Promise<void> {
  const answers = await Promise.all(
    urls.map(async (url) => ({ url, answer: await askNode(new URL('/v1/cluster', url), STATUS_MILLIS_MAX) })),
  );
  for (const { url, answer } of answers) {
    if (isReport(answer)) refuseLed(url, answer.body, group);
    else if ([401, 403].includes(answer.status)) throw saysNothing(url, answer);
  }
}

function isReport(answer: NodeResponse): answer is NodeResponse & { readonly body: ClusterReport } {
  return answer.status === 200 && isClusterReport(answer.body);
}

function saysNothing(node: string, { status, body }: NodeResponse): ClusterCommandError {
  return new ClusterCommandError(
    `${node} does not report the leaders (${messageOf(body) ?? `status ${status}`}): name a node with --node that does, ` +
      'or leave --node out if none runs',
    status === 0 ? 'unreachable' : 'refused',
  );
}

function refuseLed(node: string, { partitions }: ClusterReport, group: number | undefined): void {
  const led = partitions.find(
    ({ id, leader }) => leader !== NO_NODE && (group === undefined || group === id + 1),
  );
  if (led !== undefined)
    throw new ClusterCommandError(
      `${node} says that node ${led.leader} leads group ${led.id + 1}: it has its quorum, and is not recovered`,
    );
}
