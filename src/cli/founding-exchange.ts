/**
 * Containers of one cluster tell each other, over a port of its own, what their volumes remember: so the first ones agree on what the
 * cluster is founded with, and later ones learn it. It holds no secret, and whoever tells something wrong keeps a node out at most.
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

/** Tells what `record` gives, for as long as the process runs. Rejects if the address cannot be taken. */
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

export interface Other {
  readonly nodeId: number;
  readonly host: string;
}

/**
 * Asks all others again and again, until `conclude` has a result.
 *
 * @param say told what is waited for, when that changes
 * @throws what `conclude` throws
 */
export async function exchange<Result>(
  others: readonly Other[],
  { port, clusterId }: { readonly port: number; readonly clusterId: string | undefined },
  conclude: (told: ReadonlyMap<number, FoundingRecord>) => Result | undefined,
  say: (line: string) => void,
): Promise<Result> {
  let said = '';
  for (;;) {
    const answers = await Promise.all(
      others.map(async (other) => [other, await recordOf(other, port)] as const),
    );
    const told = new Map<number, FoundingRecord>();
    const missing: string[] = [];
    for (const [{ nodeId, host }, record] of answers) {
      const where = `node ${nodeId} at ${host}`;
      if (record === undefined) missing.push(`${where}, which does not answer`);
      else if (record.nodeId === nodeId && isOf(record, clusterId)) told.set(nodeId, record);
      else missing.push(`${where}, where node ${record.nodeId} of ${clusterName(record.clusterId)} is`);
    }
    const result = conclude(told);
    if (result !== undefined) return result;
    const line =
      missing.length === 0 ? 'waiting for node 1 to found the cluster' : `waiting for ${missing.join('; ')}`;
    if (line !== said) say(line);
    said = line;
    await delay(AGAIN_MILLIS);
  }
}

/** Whoever was given no id takes part in what draws one, and in nothing that was given one. */
function isOf({ clusterId: other, founding }: FoundingRecord, clusterId: string | undefined): boolean {
  return other === clusterId || (clusterId === undefined && founding?.clusterId === other);
}

/** Undefined: nobody answers there, or what is no record. The name is looked up anew each time. */
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
