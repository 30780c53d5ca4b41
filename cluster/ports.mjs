// Finds the addresses that `npm start` will use, and which of them are taken. Uses only Node built-ins, because it runs
// before node_modules exists. It ignores what it cannot read: the command itself checks again and reports errors.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** The same values as in src/config/cluster-directory.ts; test/package/start.test.ts compares them. */
const NODES_DEFAULT = 3;
const BASE_PORT_DEFAULT = 8_100;
const PORT_OFFSETS = [0, 1_000, 2_000, 3_000];
const LOCAL_HOST = '127.0.0.1';
const LISTENERS = ['http', 'peer', 'resp', 'grpc'];
const ANSWER_MILLIS_MAX = 1_000;

/**
 * @param {string[]} args arguments of `npm start`
 * @returns the addresses that the cluster would use, as far as they are known
 */
export function wantedAddresses(args) {
  const options = {
    data: { type: 'string', default: './data' },
    nodes: { type: 'string', default: String(NODES_DEFAULT) },
    'base-port': { type: 'string' },
    fresh: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  };
  const { values } = parseArgs({ args, options, strict: false });
  if (values.help) return [];
  const basePort = values['base-port'];
  const stored = values.fresh ? undefined : storedNodes(values.data);
  const ids =
    stored?.map(({ id }) => id) ?? Array.from({ length: Number(values.nodes) || 0 }, (_, i) => i + 1);
  if (basePort !== undefined || stored === undefined)
    return ids.flatMap((id) => localAddresses(id, Number(basePort ?? BASE_PORT_DEFAULT)));
  return stored.flatMap((node) => LISTENERS.flatMap((name) => node[name] ?? []));
}

function localAddresses(id, basePort) {
  const ports = PORT_OFFSETS.map((offset) => basePort + offset + id);
  return ports.filter((port) => port > 0 && port < 65_536).map((port) => ({ host: LOCAL_HOST, port }));
}

/** The nodes in this directory that `npm start` would start. Undefined: there is no cluster. */
function storedNodes(directory) {
  const path = join(directory, 'cluster.json');
  if (!existsSync(path)) return undefined;
  try {
    const { nodes, founders } = JSON.parse(readFileSync(path, 'utf8'));
    const founding = founders.map(({ id }) => id);
    return nodes.filter(({ id }) => isStartedHere(join(directory, `node-${id}`), id, founding));
  } catch {
    return [];
  }
}

/** Returns true if the node belongs to the cluster, as far as its own database knows (src/node/member-cache.ts). */
function isStartedHere(database, id, founding) {
  if (!existsSync(database)) return false;
  const path = join(database, 'members.json');
  if (!existsSync(path)) return founding.includes(id);
  const { nodes, isRemoved } = JSON.parse(readFileSync(path, 'utf8'));
  return isRemoved !== true && (nodes.length === 0 ? founding : nodes).includes(id);
}

/** @returns a description of each address that is taken */
export async function takenAmong(addresses) {
  const isInUse = await Promise.all(addresses.map(isTaken));
  return Promise.all(addresses.filter((_, i) => isInUse[i]).map(inWords));
}

async function isTaken({ host, port }) {
  const server = createServer();
  return new Promise((resolve) => {
    // The command itself reports other problems with an address better.
    server.once('error', ({ code }) => resolve(code === 'EADDRINUSE'));
    server.listen(port, host, () => server.close(() => resolve(false)));
  });
}

async function inWords({ host, port }) {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX);
  try {
    const { self, nodes } = await (await fetch(`http://${address}/v1/cluster`, { signal })).json();
    const { pid } = nodes.find(({ id }) => id === self.id);
    return `${address} (node ${self.id} of a cluster that runs, pid ${pid})`;
  } catch {
    return address;
  }
}
