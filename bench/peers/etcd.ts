/** Starts three members of etcd, each of which syncs its own disk, for the limiter in `etcd-limiter.ts`. */
import { freeBasePort, isInstalled, startServer, untilReady } from './servers.ts';
import type { Running } from '../running.ts';
import { sumOfMetric, textFrom } from './metrics-text.ts';
import type { RunningThing, ThingUnderLoad, WorkCounters } from './thing-under-load.ts';

const PROGRAM = 'etcd';
const MEMBERS = 3;

interface Member {
  readonly name: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly clientPort: number;
}

function localUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Describes one member. @param port for clients; the next one is for peers */
function newMember(id: number, port: number): Member {
  return { name: `m${id}`, clientUrl: localUrl(port), peerUrl: localUrl(port + 1), clientPort: port };
}

/** Syncs of all members, and committed entries counted once for the cluster. */
async function countersOf(members: readonly Member[]): Promise<WorkCounters> {
  const texts = await Promise.all(members.map(async ({ clientUrl }) => textFrom(`${clientUrl}/metrics`)));
  const sums = (name: string): number[] => texts.map((text) => sumOfMetric(text, name));
  return {
    syncs: sums('etcd_disk_wal_fsync_duration_seconds_count').reduce((sum, each) => sum + each, 0),
    entries: Math.max(...sums('etcd_server_proposals_committed_total')),
  };
}

async function start(running: Running): Promise<RunningThing> {
  const directory = running.directory('etcd');
  const basePort = await freeBasePort(Array.from({ length: 2 * MEMBERS }, (_, i) => i));
  const members = Array.from({ length: MEMBERS }, (_, i) => newMember(i + 1, basePort + 2 * i));
  const initial = members.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(',');
  const servers = members.map(({ name, clientUrl, peerUrl }) => {
    const options: Readonly<Record<string, string>> = {
      name,
      'data-dir': `${directory}/${name}`,
      'listen-client-urls': clientUrl,
      'advertise-client-urls': clientUrl,
      'listen-peer-urls': peerUrl,
      'initial-advertise-peer-urls': peerUrl,
      'initial-cluster': initial,
      'initial-cluster-state': 'new',
    };
    const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    return startServer(running, { program: PROGRAM, args, directory });
  });
  for (const [i, server] of servers.entries()) {
    const url = members[i]?.clientUrl ?? '';
    await untilReady(server, async () => (await textFrom(`${url}/health`)).includes('true'));
  }
  const addresses = members.map(({ clientPort: port }) => ({ host: '127.0.0.1', port }));
  return {
    pids: servers.map(({ pid }) => pid),
    limiter: { kind: 'etcd', addresses },
    counters: async () => countersOf(members),
    async stop() {
      await Promise.all(servers.map(async ({ child }) => running.stop(child)));
      running.removeDirectory(directory);
    },
  };
}

export function etcd(running: Running): ThingUnderLoad {
  return {
    id: 'etcd',
    name: 'etcd x3, compare-and-swap, gRPC',
    promise: {
      disks: 2,
      failoverLoses: 'nothing',
      inWords: 'synced on the disks of two members of three before the answer',
    },
    missing: () => (isInstalled(PROGRAM) ? undefined : 'etcd is not installed (apt-get install etcd-server)'),
    start: async () => start(running),
  };
}
