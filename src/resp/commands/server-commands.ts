/** `INFO`, `DBSIZE` and `CONFIG`: commands with which clients and tools inspect a server. */
import type { Call, Command, ListenerState } from '../command.ts';
import { container } from '../command-table.ts';
import type { Reply } from '../reply.ts';

/**
 * The version of Redis whose commands and texts this listener follows. Clients read it to find out what they may use.
 * Our own version is `quorate_version`.
 */
const REDIS_VERSION = '7.4.0';

/** `redis-benchmark` asks for these settings first. Grants are on disk, but not in a dump file. */
const CONFIGURED = { save: '', appendonly: 'yes' };
/** The most bytes of a name that are compared. */
const SHOWN_BYTES_MAX = 64;

type Section = (listener: ListenerState) => Readonly<Record<string, string | number>>;

const SECTIONS: Readonly<Record<string, Section>> = {
  Server: ({ version, monotonicMillis, startedMillis, port }) => ({
    redis_version: REDIS_VERSION,
    quorate_version: version,
    redis_mode: 'cluster',
    process_id: process.pid,
    tcp_port: port(),
    uptime_in_seconds: Math.floor((monotonicMillis() - startedMillis) / 1000),
  }),
  Clients: ({ sessions, connectionsMax }) => ({
    connected_clients: [...sessions()].length,
    maxclients: connectionsMax,
  }),
  Stats: ({ counts }) => ({
    total_connections_received: counts.connections,
    rejected_connections: counts.rejected,
    total_commands_processed: counts.commands,
    quorate_granted: counts.answers.granted,
    quorate_denied: counts.answers.denied,
    quorate_unavailable: counts.answers.unavailable,
  }),
  Replication: () => ({ role: 'master', connected_slaves: 0 }),
  Cluster: ({ node }) => ({ cluster_enabled: 1, quorate_status: node.readiness().status }),
  // Tools read the list of databases here; there are none.
  Keyspace: () => ({}),
};
const ALL_SECTIONS: readonly string[] = ['default', 'all', 'everything'];

/** The commands that describe the server. */
export const SERVER_COMMANDS: readonly Command[] = [
  {
    name: 'INFO',
    arity: -1,
    flags: ['loading', 'stale'],
    key: 0,
    summary: 'Describes this node and its counters, in sections',
    run: info,
  },
  {
    name: 'DBSIZE',
    arity: 1,
    flags: ['fast'],
    key: 0,
    summary: 'Always 0: keys are not kept to be listed',
    run: () => 0,
  },
  container(
    {
      name: 'CONFIG',
      arity: -2,
      flags: ['admin', 'noscript', 'loading', 'stale'],
      summary: 'Reads settings; nothing can be set',
    },
    [
      {
        name: 'GET',
        arity: -3,
        flags: ['admin', 'noscript', 'loading', 'stale'],
        key: 0,
        summary: 'What tools ask about persistence; settings are in cluster.json',
        run: configGet,
      },
    ],
  ),
];

function configGet({ args }: Call): Reply {
  const wanted = new Set<string>();
  for (let i = 2; i < args.count; i += 1) wanted.add(args.shown(i, SHOWN_BYTES_MAX).toLowerCase());
  return { kind: 'map', entries: Object.entries(CONFIGURED).filter(([name]) => wanted.has(name)) };
}

function info({ args, listener }: Call): Reply {
  const wanted = new Set<string>();
  for (let i = 1; i < args.count; i += 1) wanted.add(args.shown(i, SHOWN_BYTES_MAX).toLowerCase());
  const isAll = wanted.size === 0 || ALL_SECTIONS.some((name) => wanted.has(name));
  return Object.entries(SECTIONS)
    .filter(([name]) => isAll || wanted.has(name.toLowerCase()))
    .map(([name, section]) => {
      const fields = Object.entries(section(listener)).map(([field, value]) => `${field}:${value}\r\n`);
      return `# ${name}\r\n${fields.join('')}`;
    })
    .join('\r\n');
}
