/**
 * Callers that each ask for one grant at a time, like the handlers of a service: by plain HTTP requests, or by the
 * client.
 */
import { reportFrom } from '../../cluster/processes.ts';
import { listenerUrl } from '../../src/cli/node-fetch.ts';
import { HttpTransport } from '../../src/client/http-transport.ts';
import { QuorateClient } from '../../src/client/index.ts';
import type { QuorateCluster } from '../peers/quorate-cluster.ts';

export interface Asked {
  readonly cluster: QuorateCluster;
  readonly callers: number;
  readonly millis: number;
}

export interface Measured {
  readonly granted: number;
  /** Denials and errors. */
  readonly others: number;
  readonly perSecond: number;
  /** Processor time of this process. */
  readonly processorMillis: number;
}

const USERS = 10_000;
const RULE = 'open';
const ATTEMPT_MILLIS = 5_000;

function originsOf({ config: { nodes, tls } }: QuorateCluster): string[] {
  return nodes.map((node) => listenerUrl(node, tls));
}

/**
 * Runs the callers for the measured time.
 *
 * @param ask requests one grant for the user; returns whether it was granted
 */
async function measured(
  { callers, millis }: Asked,
  ask: (userId: string, turn: number) => Promise<boolean>,
): Promise<Measured> {
  const before = process.cpuUsage();
  const startedMillis = performance.now();
  let turn = 0;
  let granted = 0;
  let others = 0;
  const call = async (): Promise<void> => {
    while (performance.now() - startedMillis < millis) {
      turn += 1;
      const isGranted = await ask(`user-${turn % USERS}`, turn).catch(() => false);
      if (isGranted) granted += 1;
      else others += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - startedMillis) / 1_000;
  return { granted, others, perSecond: granted / seconds, processorMillis: (user + system) / 1_000 };
}

/** Measures `POST /v1/allow` to each node in turn, over one kept connection for each caller. */
export async function measureSinglePosts(asked: Asked): Promise<Measured> {
  const origins = originsOf(asked.cluster);
  const transport = new HttpTransport({ token: undefined, tls: undefined, batchesPerNodeMax: asked.callers });
  const result = await measured(asked, async (userId, turn) => {
    const origin = origins[turn % origins.length] ?? '';
    const body = JSON.stringify({
      userId,
      rule: RULE,
      requestId: `${process.pid}-${turn}-${performance.now()}`,
    });
    const exchange = {
      origin,
      method: 'POST',
      path: '/v1/allow',
      body,
      timeoutMillis: ATTEMPT_MILLIS,
    } as const;
    return new Promise((resolve) => {
      transport.send(exchange, (result) => {
        const isGrant = result.kind === 'response' && result.status === 200;
        resolve(isGrant && (JSON.parse(result.body) as { allowed?: unknown }).allowed === true);
      });
    });
  });
  transport.close();
  return result;
}

/**
 * Measures the client.
 *
 * @returns `straight`: the fraction of decided requests whose last node led the partition, before and after the load
 */
export async function measureClient(asked: Asked): Promise<Measured & { readonly straight: number }> {
  const nodes = originsOf(asked.cluster);
  const before = await leadersOf(asked.cluster);
  let decided = 0;
  let straight = 0;
  const client = new QuorateClient({
    nodes,
    onEvent: (event) => {
      if (event.type !== 'answered' || event.partition === undefined) return;
      decided += 1;
      if (event.attempts === 1 && event.node === before[event.partition]) straight += 1;
    },
  });
  const result = await measured(
    asked,
    async (userId) => (await client.allow({ userId, rule: RULE })).allowed,
  );
  client.close();
  const after = await leadersOf(asked.cluster);
  if (after.join() !== before.join())
    console.log('leaders have changed: the fraction of straight requests is too low');
  return { ...result, straight: straight / Math.max(1, decided) };
}

/** Origin of the leader, by partition. */
async function leadersOf({ config }: QuorateCluster): Promise<string[]> {
  const [first] = config.nodes;
  const report = first === undefined ? undefined : await reportFrom(listenerUrl(first, config.tls));
  if (report === undefined) throw new Error('no node says which nodes lead');
  return report.partitions.map(({ leader }) => {
    const node = config.nodes.find(({ id }) => id === leader);
    return node === undefined ? '' : listenerUrl(node, config.tls);
  });
}
