/**
 * Which node to ask for what: the leader of its partition where one is known, else each node in turn; none that failed just now while
 * there are others. It asks nobody itself. A wrong entry costs a hop between nodes and nothing else.
 */
import { keySlot, partitionOfSlot } from '../api/key-slot.ts';
import type { LeadersReport } from '../api/leaders.ts';
import { addressText, readAddress } from '../api/node-address.ts';

/** How long a node that failed is left alone: so long the first time, then twice as long each time, up to the second. */
const AVOIDED_MILLIS = 500;
const AVOIDED_MILLIS_MAX = 30_000;
/** More than clusters have: a report of more is cut off. */
const NODES_MAX = 1_024;

interface Avoided {
  readonly untilMillis: number;
  readonly times: number;
}

export class LeaderTable {
  readonly #seeds: readonly string[];
  readonly #scheme: string;
  /** By partition; a leader that is not among the nodes is undefined. */
  #leaders: readonly { readonly origin: string | undefined; readonly term: number }[] = [];
  /** As the cluster names them; empty: nothing was heard. */
  #nodes: readonly string[] = [];
  readonly #avoided = new Map<string, Avoided>();
  #turn: number;

  /** @param seeds origins, at least one @param firstTurn so that clients do not all begin with the same node */
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

  /** Partitions, and how many of them have a known leader. */
  get counts(): { readonly partitions: number; readonly led: number } {
    const led = this.#leaders.filter(({ origin }) => origin !== undefined).length;
    return { partitions: this.#leaders.length, led };
  }

  /** Of a key; undefined while it is not known how many there are. */
  partitionOf(key: string): number | undefined {
    const { length } = this.#leaders;
    return length === 0 ? undefined : partitionOfSlot(keySlot(key), length);
  }

  /** A decision of this term shows that somebody else leads by now. */
  isOutdated(partition: number, term: number): boolean {
    const known = this.#leaders[partition];
    return known !== undefined && term > known.term;
  }

  /** Whoever goes to any node goes to the next one from now on. */
  nextTurn(): void {
    this.#turn += 1;
  }

  isLeader(origin: string, partition: number | undefined): boolean {
    return partition !== undefined && this.#leaders[partition]?.origin === origin;
  }

  /** @param partition undefined: any node will do */
  choose(partition: number | undefined, nowMillis: number): string {
    const leader = partition === undefined ? undefined : this.#leaders[partition]?.origin;
    if (leader !== undefined && !this.#isAvoided(leader, nowMillis)) return leader;
    const isFree = (origin: string): boolean => !this.#isAvoided(origin, nowMillis);
    const free = this.#nodes.filter(isFree);
    const seeds = free.length > 0 ? free : this.#seeds.filter(isFree);
    const among = seeds.length > 0 ? seeds : this.#seeds;
    return among[this.#turn % among.length] ?? '';
  }

  /** It could not be reached, was silent, or takes no requests. */
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
