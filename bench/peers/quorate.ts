/** Quorate as a thing under load, with the defaults of `npm start` or with another number of nodes and partitions. */
import type { Address, RespForm } from '../load/load-job.ts';
import type { Running } from '../running.ts';
import type { LoadRuleId } from '../workloads.ts';
import { sumOfMetric, textFrom } from './metrics-text.ts';
import { QuorateCluster, type QuorateShape } from './quorate-cluster.ts';
import type { GrantPromise, RunningThing, ThingUnderLoad, WorkCounters } from './thing-under-load.ts';

/** The shapes of `--sweep`. */
const SWEEPS = {
  partitions: [1, 3, 6, 16, 64, 256, 1_024].map((partitions) => ({ partitions })),
  nodes: [3, 5].map((nodes) => ({ nodes })),
  // Shows what a second node gains on one machine if nodes hold no copies of each other.
  cores: [1, 2].map((nodes) => ({ nodes, copies: 1, partitions: 4 })),
} as const satisfies Record<string, readonly QuorateShape[]>;
export type SweepId = keyof typeof SWEEPS;
export const SWEEP_IDS = Object.keys(SWEEPS) as readonly SweepId[];

function commandOf(rule: LoadRuleId): readonly string[] {
  return ['ALLOW', '{key}', 'RULE', rule];
}

export const RESP_FORM: RespForm = {
  commands: { open: commandOf('open'), spent: commandOf('spent'), small: commandOf('small') },
  grantValue: 1,
  waitForReplicas: 0,
};

/** Syncs of all nodes, and entries counted once for the cluster by the highest commit index of any node. */
async function countersOf(addresses: readonly Address[]): Promise<WorkCounters> {
  const urls = addresses.map(({ host, port }) => `http://${host}:${port}`);
  const texts = await Promise.all(urls.map(async (url) => textFrom(`${url}/metrics`)));
  const report = JSON.parse(await textFrom(`${urls[0]}/v1/cluster`)) as {
    readonly partitions: readonly { readonly commit: number }[];
  };
  return {
    syncs: texts.reduce((sum, text) => sum + sumOfMetric(text, 'quorate_disk_write_seconds_count'), 0),
    entries: report.partitions.reduce((sum, { commit }) => sum + commit, 0),
  };
}

async function start(running: Running, shape: QuorateShape): Promise<RunningThing> {
  const cluster = await QuorateCluster.start(running, shape);
  const { pids, http, resp } = cluster;
  return {
    pids,
    http: { addresses: http },
    resp: { addresses: resp, form: RESP_FORM },
    counters: async () => countersOf(http),
    stop: async () => cluster.stop(),
  };
}

/**
 * Starts a closed cluster with TLS at every listener and between nodes. Its counters are not read: they need a token,
 * too.
 */
async function startGuarded(running: Running): Promise<RunningThing> {
  const cluster = await QuorateCluster.start(running, { tls: true });
  const token = await cluster.createToken('decide', await cluster.createToken('admin'));
  const { pids, http, resp } = cluster;
  return {
    pids,
    http: { addresses: http, token },
    resp: { addresses: resp, form: RESP_FORM, token },
    stop: async () => cluster.stop(),
  };
}

function promiseOf({ copies }: QuorateShape): GrantPromise {
  if (copies === 1)
    return { disks: 1, failoverLoses: 'all', inWords: 'synced on one disk before the answer' };
  const inWords = 'synced on the disks of two replicas of three before the answer';
  return { disks: 2, failoverLoses: 'nothing', inWords };
}

/** Quorate with TLS and tokens, to measure what they cost. */
export function quorateGuarded(running: Running): ThingUnderLoad {
  return {
    id: 'quorate-guarded',
    name: 'Quorate, TLS and tokens',
    promise: promiseOf({}),
    start: async () => startGuarded(running),
  };
}

export function quorate(running: Running): ThingUnderLoad {
  return {
    id: 'quorate',
    name: 'Quorate, 3 nodes',
    promise: promiseOf({}),
    start: async () => start(running, {}),
  };
}

export function quorateOf(shape: QuorateShape, running: Running): ThingUnderLoad {
  const sizes = Object.entries(shape).map(([what, size]) => ({ what, size: Number(size) }));
  return {
    id: ['quorate', ...sizes.map(({ what, size }) => `${size}-${what}`)].join('-'),
    name: `Quorate, ${sizes.map(({ what, size }) => `${size} ${nameOf(what, size)}`).join(', ')}`,
    promise: promiseOf(shape),
    start: async () => start(running, shape),
  };
}

function nameOf(what: string, size: number): string {
  if (size !== 1) return what;
  return what === 'copies' ? 'copy' : what.slice(0, -1);
}

/** Quorate in several shapes, for `--sweep`. */
export function sweepOf(id: SweepId, running: Running): ThingUnderLoad[] {
  const shapes: readonly QuorateShape[] = SWEEPS[id];
  return shapes.map((shape) => quorateOf(shape, running));
}
