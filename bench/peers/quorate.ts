/** Three nodes of Quorate as real processes of the compiled command, on one machine. */
import { connect } from 'node:net';
import { startNodeProcess, waitUntilReady } from '../../cluster/processes.ts';
import { createCluster, LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import type { Address, RespForm } from '../load/load-job.ts';
import { freeBasePort } from '../ports.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES, type LoadRuleId } from '../workloads.ts';
import { sumOfMetric, textFrom } from './metrics-text.ts';
import type { RunningThing, ThingUnderLoad, WorkCounters } from './thing-under-load.ts';

const NODES = 3;
const READY_MILLIS_MAX = 60_000;
/** Of each door from the base port: HTTP, peers, Redis protocol. */
const DOORS = [0, 1_000, 2_000];
const RESP_DISTANCE = 2_000;

function configOf(basePort: number): ClusterConfig {
  const { open } = LOAD_RULES;
  const { partitions } = LOCAL_DEFAULTS;
  const local = localConfig({ ...open, nodes: NODES, partitions, basePort });
  const rules = Object.entries(LOAD_RULES).map(([id, rule]) => ({ id, ...rule, clock: 'cluster' as const }));
  return { ...local, rules: { ...local.rules, rules } };
}

function commandOf(rule: LoadRuleId): readonly string[] {
  return ['ALLOW', '{key}', 'RULE', rule];
}

const RESP_FORM: RespForm = {
  commands: { open: commandOf('open'), spent: commandOf('spent'), small: commandOf('small') },
  grantValue: 1,
  waitForReplicas: 0,
};

async function isListening({ host, port }: Address): Promise<boolean> {
  const socket = connect({ host, port });
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  socket.destroy();
  return isOpen;
}

/** Syncs of all nodes; entries once for the cluster, by the highest commit index that any node knows. */
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

async function start(running: Running): Promise<RunningThing> {
  const ids = Array.from({ length: NODES }, (_, i) => i + 1);
  const basePort = await freeBasePort(DOORS.flatMap((door) => ids.map((id) => door + id)));
  const config = configOf(basePort);
  const directory = running.directory('quorate');
  await createCluster(directory, config);
  const nodes = config.nodes.map(({ id }) => startNodeProcess(directory, id));
  for (const { child } of nodes) running.add(child);
  await waitUntilReady(config, READY_MILLIS_MAX);
  const http = config.nodes.map((node) => node.http);
  const resp = http.map(({ host, port }) => ({ host, port: port + RESP_DISTANCE }));
  const hasResp = (await Promise.all(resp.map(isListening))).every(Boolean);
  return {
    pids: nodes.flatMap(({ child }) => child.pid ?? []),
    http: { addresses: http },
    ...(hasResp && { resp: { addresses: resp, form: RESP_FORM } }),
    counters: async () => countersOf(http),
    async stop() {
      await Promise.all(nodes.map(async ({ child }) => running.stop(child)));
      running.removeDirectory(directory);
    },
  };
}

export function quorate(running: Running): ThingUnderLoad {
  return {
    id: 'quorate',
    name: 'Quorate, 3 nodes',
    promise: 'synced on the disks of two nodes of three before the answer',
    start: async () => start(running),
  };
}
