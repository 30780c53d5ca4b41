/**
 * Lets the containers of a cluster read each other's founding records over a port of its own. From them the first
 * containers agree on how the cluster is founded, and later ones learn it. Records contain no secrets; the worst that a
 * false record can do is to keep a node from starting.
 */
import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { addressText } from '../api/node-address.ts';
import { clusterName, type FoundingRecord, recordIn } from './founding-record.ts';

const PATH = '/founding';
const AGAIN_MILLIS = 500;
const ANSWER_MILLIS_MAX = 2_000;
const ANSWER_BYTES_MAX = 65_536;
const CONNECTIONS_MAX = 64;

/** Serves the current record while the process runs. Rejects if the address cannot be used. */
export async function serveRecord(
  address: { readonly host: string; readonly port: number },
  record: () => FoundingRecord,
): Promise<Server> {
  const server = createServer(
    { requestTimeout: ANSWER_MILLIS_MAX, connectionsCheckingInterval: 500 },
    (request, response) => {
      const isKnown = request.method === 'GET' && request.url === PATH;
      response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json', connection: 'close' });
      response.end(isKnown ? JSON.stringify(record()) : '{}');
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return server;
}

/** Another container. */
export interface Other {
  readonly nodeId: number;
  readonly host: string;
}

/**
 * Asks all other containers again and again until `conclude` returns a result.
 *
 * @param say called with what is missing, each time that changes
 * @throws the errors of `conclude`
 */
export async function exchange<Result>(
  others: readonly Other[],
  { port, clusterId }: { readonly port: number; readonly clusterId: string | undefined },
  conclude: (records: ReadonlyMap<number, FoundingRecord>) => Result | undefined,
  say: (line: string) => void,
): Promise<Result> {
  let said = '';
  for (;;) {
    const answers = await Promise.all(
      others.map(async (other) => [other, await recordOf(other, port)] as const),
    );
    const records = new Map<number, FoundingRecord>();
    const missing: string[] = [];
    for (const [{ nodeId, host }, record] of answers) {
      const where = `node ${nodeId} at ${host}`;
      if (record === undefined) missing.push(`${where}, which does not answer`);
      else if (record.nodeId === nodeId && isOf(record, clusterId)) records.set(nodeId, record);
      else missing.push(`${where}, where node ${record.nodeId} of ${clusterName(record.clusterId)} is`);
    }
    const result = conclude(records);
    if (result !== undefined) return result;
    const line =
      missing.length === 0 ? 'waiting for node 1 to found the cluster' : `waiting for ${missing.join('; ')}`;
    if (line !== said) say(line);
    said = line;
    await delay(AGAIN_MILLIS);
  }
}

/** A container without a cluster id only accepts records of a founding that draws its id. */
function isOf({ clusterId: other, founding }: FoundingRecord, clusterId: string | undefined): boolean {
  return other === clusterId || (clusterId === undefined && founding?.clusterId === other);
}

/**
 * Reads the record of another container. Undefined: it does not answer, or with something else. The host name is
 * resolved anew each time.
 */
async function recordOf({ host }: Other, port: number): Promise<FoundingRecord | undefined> {
  try {
    const url = `http://${addressText({ host, port })}${PATH}`;
    const response = await fetch(url, {
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
      redirect: 'error',
      headers: { connection: 'close' },
    });
    if (!response.ok || Number(response.headers.get('content-length') ?? 0) > ANSWER_BYTES_MAX)
      return undefined;
    return recordIn(await response.text(), url);
  } catch {
    return undefined;
  }
}
