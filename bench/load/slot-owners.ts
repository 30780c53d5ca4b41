/** Reads from `CLUSTER SLOTS` which node of a Redis cluster serves each of the 16,384 slots. */
import { Redis } from 'ioredis';
import type { Address } from './load-job.ts';

const SLOTS = 16_384;
const NOBODY = -1;

export interface SlotOwners {
  readonly nodes: readonly Address[];
  /** Index in `nodes` of the node that serves a slot; -1 if none does. */
  ownerOf(slot: number): number;
}

/**
 * Parses the reply.
 *
 * @param reply rows of first slot, last slot and nodes (host, port, …), the one that takes writes first
 * @throws TypeError if the reply has another form
 */
export function slotOwners(reply: unknown, asked: Address): SlotOwners {
  if (!Array.isArray(reply)) throw new TypeError('CLUSTER SLOTS answered no array');
  const nodes: Address[] = [];
  const owners = new Int16Array(SLOTS).fill(NOBODY);
  for (const row of reply as unknown[]) {
    const [first, last, node] = Array.isArray(row) ? (row as unknown[]) : [];
    const [host, port] = Array.isArray(node) ? (node as unknown[]) : [];
    if (typeof first !== 'number' || typeof last !== 'number' || typeof port !== 'number')
      throw new TypeError('CLUSTER SLOTS answered a row that is not: first, last, [host, port]');
    // A node that does not know its own host name leaves it empty. Then it is the host that was asked.
    const address = { host: typeof host === 'string' && host !== '' ? host : asked.host, port };
    let owner = nodes.findIndex((known) => known.host === address.host && known.port === port);
    if (owner === NOBODY) owner = nodes.push(address) - 1;
    owners.fill(owner, first, last + 1);
  }
  return { nodes, ownerOf: (slot) => owners[slot] ?? NOBODY };
}

/** Asks a node. @throws if it cannot be reached or belongs to no cluster */
export async function readSlots(address: Address): Promise<SlotOwners> {
  const client = new Redis({ ...address, lazyConnect: true, retryStrategy: () => null });
  // Each call throws its own error; this listener only keeps the process alive.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const owners = slotOwners(await client.call('CLUSTER', 'SLOTS'), address);
    if (owners.nodes.length === 0) throw new Error('CLUSTER SLOTS names no node that serves anything');
    return owners;
  } finally {
    client.disconnect();
  }
}
