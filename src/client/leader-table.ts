/**
 * Chooses the node for a request: the known leader of its partition, or else the nodes in turn. A node that failed
 * recently is avoided while there are others. A wrong entry only costs a hop, because nodes forward requests to the
 * leader.
 */
import { keySlot, partitionOfSlot } from '../api/key-slot.ts';
import type { LeadersReport } from '../api/leaders.ts';
import { addressText, readAddress } from '../api/node-address.ts';

/**
 * How long a failed node is avoided, in milliseconds. The time doubles with each failure in a row, up to the maximum.
 */
const AVOIDED_MILLIS = 500;
const AVOIDED_MILLIS_MAX = 30_000;
/** Longest list of nodes to accept. No cluster has that many. */
const NODES_MAX = 1_024;

interface Avoided {
  readonly untilMillis: number;
  readonly times: number;
}

/** The nodes of a cluster, the leaders of its partitions, and the nodes to avoid. */
export class LeaderTable {
  readonly #seeds: readonly string[];
  readonly #scheme: string;
  /** By partition. The origin is undefined if the leader is unknown or not in the list of nodes. */
  #leaders: readonly { readonly origin: string | undefined; readonly term: number }[] = [];
  /** The nodes that the cluster reported. Empty: there was no report yet. */
  #nodes: readonly string[] = [];
  readonly #avoided = new Map<string, Avoided>();
  #turn: number;

  /**
   * @param seeds origins of the configured nodes, at least one
   * @param firstTurn the position to begin at; random, so that clients do not all begin with the same node
   */
  constructor(seeds: readonly string[], firstTurn: number) {
    this.#seeds = seeds;
    this.#scheme = seeds[0]?.startsWith('https:') === true ? 'https' : 'http';
    this.#turn = firstTurn;
  }

  learn({ nodes, partitions }: LeadersReport): void {
    const origins = new Map<number, string>();
    for (const { id, http } of nodes.slice(0, NODES_MAX)) {
      const address = readAddress(http);
      const url = address && `${this.#scheme}://${addressText(address)}`;
      if (url !== undefined && URL.canParse(url)) origins.set(id, new URL(url).origin);
    }
    this.#nodes = [...origins.values()];
    this.#leaders = partitions.map(({ leader, term }) => ({ origin: origins.get(leader), term }));
    const known = new Set([...this.#seeds, ...this.#nodes]);
    for (const origin of this.#avoided.keys()) if (!known.has(origin)) this.#avoided.delete(origin);
  }

  /** The number of partitions, and how many of them have a known leader. */
  get counts(): { readonly partitions: number; readonly led: number } {
    const led = this.#leaders.filter(({ origin }) => origin !== undefined).length;
    return { partitions: this.#leaders.length, led };
  }

  /** Returns the partition of a key, or undefined while the number of partitions is unknown. */
  partitionOf(key: string): number | undefined {
    const { length } = this.#leaders;
    return length === 0 ? undefined : partitionOfSlot(keySlot(key), length);
  }

  /** Returns true if `term` is newer than the known one: another node leads the partition now. */
  isOutdated(partition: number, term: number): boolean {
    const known = this.#leaders[partition];
    return known !== undefined && term > known.term;
  }

  /** Makes requests without a known leader go to the next node from now on. */
  nextTurn(): void {
    this.#turn += 1;
  }

  isLeader(origin: string, partition: number | undefined): boolean {
    return partition !== undefined && this.#leaders[partition]?.origin === origin;
  }

  /**
   * Returns the origin of the node to send to.
   *
   * @param partition undefined: any node will do
   */
  choose(partition: number | undefined, nowMillis: number): string {
    const leader = partition === undefined ? undefined : this.#leaders[partition]?.origin;
    if (leader !== undefined && !this.#isAvoided(leader, nowMillis)) return leader;
    const isFree = (origin: string): boolean => !this.#isAvoided(origin, nowMillis);
    const free = this.#nodes.filter(isFree);
    const seeds = free.length > 0 ? free : this.#seeds.filter(isFree);
    const among = seeds.length > 0 ? seeds : this.#seeds;
    return among[this.#turn % among.length] ?? '';
  }

  /** Avoids a node for some time, because it could not be reached, did not answer, or accepts no requests. */
  failed(origin: string, nowMillis: number): void {
    const times = this.#avoided.get(origin)?.times ?? 0;
    const millis = Math.min(AVOIDED_MILLIS_MAX, AVOIDED_MILLIS * 2 ** times);
    this.#avoided.set(origin, { untilMillis: nowMillis + millis, times: times + 1 });
  }

  answered(origin: string): void {
    this.#avoided.delete(origin);
  }

  #isAvoided(origin: string, nowMillis: number): boolean {
    const avoided = this.#avoided.get(origin);
    return avoided !== undefined && nowMillis < avoided.untilMillis;
  }
}
