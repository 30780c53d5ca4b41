/** What a nemesis is, and what it is given: the cluster, randomness, a log, and claims on nodes it may harm. */
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { RandomBelow } from '../../../raft/core-state.ts';
import type { NodeId } from '../../../raft/types.ts';
import type { ClusterUnderTest } from '../cluster-under-test.ts';
import { between, shuffled } from './draw.ts';

export const FAMILIES = ['process', 'network', 'clock', 'disk', 'membership'] as const;
export type Family = (typeof FAMILIES)[number];

export interface Nemesis {
  readonly name: string;
  readonly family: Family;
  /** What happens is more than the product promises to notice; only run if asked for by name. */
  readonly isBeyondPromise?: true;
  /** The judges can allow for it only if nothing else is broken: it is drawn with no others. */
  readonly isAlone?: true;
  /** Why this machine cannot do it; undefined if it can. */
  needs(): string | undefined;
  /** Does harm, and resolves when it has healed. Rejects if what should have healed did not. */
  run(context: NemesisContext): Promise<void>;
}

export interface NemesisContext {
  readonly cluster: ClusterUnderTest;
  readonly random: RandomBelow;
  readonly log: NemesisLog;
  readonly claims: Claims;
  /** Once aborted, everything heals as soon as it can. */
  readonly signal: AbortSignal;
  /** Multiplies how long things last. 1 in a real run. */
  readonly tempo: number;
  /**
   * A new node takes the place of one that must not come back. Resolves with its id when all partitions have moved,
   * or with undefined if that did not happen: the old one is then still a member.
   */
  readonly replaceNode: (context: NemesisContext, oldId: NodeId) => Promise<NodeId | undefined>;
}

export interface NemesisEvent {
  readonly event: 'start' | 'note' | 'end' | 'failed' | 'skipped';
  readonly name: string;
  readonly nodes?: readonly NodeId[];
  readonly detail?: unknown;
}

/** One JSON object a line: when (by this process's monotonic clock, as operations are timed), what, to whom. */
export class NemesisLog {
  readonly events: (NemesisEvent & { readonly atNanos: number })[] = [];
  readonly #file: string | undefined;

  constructor(file?: string) {
    this.#file = file;
  }

  write(event: NemesisEvent): void {
    const atNanos = Number(process.hrtime.bigint());
    this.events.push({ ...event, atNanos });
    if (this.#file === undefined) return;
    const { event: what, name, nodes, detail } = event;
    const line = { at_ns: atNanos, event: what, name, nodes, detail };
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/**
 * Who is doing something to which node's process or disk, so that nemeses which run at the same time do not start
 * what another one stopped; and which nodes' data is damaged, so that it is never more than a minority's.
 */
export class Claims {
  readonly #held = new Set<NodeId>();
  readonly #damaged = new Set<NodeId>();
  readonly #damagedMax: () => number;
  readonly #spares: () => number;

  constructor(cluster: ClusterUnderTest) {
    // A partition has no more copies than this, however many nodes there are.
    this.#spares = () => cluster.spares.length;
    this.#damagedMax = () => Math.floor((Math.min(cluster.config.replicas, cluster.members.length) - 1) / 2);
  }

  /** The first `count` of the candidates that nobody else has. */
  take(candidates: readonly NodeId[], count: number): NodeId[] {
    const taken = candidates.filter((id) => !this.#held.has(id)).slice(0, count);
    for (const id of taken) this.#held.add(id);
    return taken;
  }

  release(ids: readonly NodeId[]): void {
    for (const id of ids) this.#held.delete(id);
  }

  /** Few enough are damaged, and there is a machine to take the place of one more. */
  get mayDamage(): boolean {
    return this.#spares() > 0 && this.#damaged.size < this.#damagedMax();
  }

  damage(id: NodeId): void {
    this.#damaged.add(id);
  }

  /** It is whole after all, or another node has its place. */
  repaired(id: NodeId): void {
    this.#damaged.delete(id);
  }
}

/** Waits, some time between the two by chance, times the tempo; not much longer once all is to end. */
export async function hold(
  { random, tempo, signal }: NemesisContext,
  minMillis: number,
  maxMillis: number,
): Promise<void> {
  const millis = Math.ceil(between(random, minMillis, maxMillis) * tempo);
  // A rejection says that it was aborted: then there is nothing to wait for.
  await delay(millis, undefined, { signal }).catch(() => undefined);
}

/** Runs one fault between two lines in the log. What it resolves with is noted in the second. */
export async function perform(
  { log }: NemesisContext,
  event: Omit<NemesisEvent, 'event'>,
  fault: () => Promise<unknown>,
): Promise<void> {
  log.write({ ...event, event: 'start' });
  try {
    const detail = await fault();
    log.write({ event: 'end', name: event.name, ...(detail !== undefined && { detail }) });
  } catch (error) {
    log.write({ event: 'failed', name: event.name, detail: String(error) });
    throw error;
  }
}

/** Members that run, in random order or, if wished, those first that lead most. */
export async function candidates(context: NemesisContext, leadersFirst: boolean): Promise<NodeId[]> {
  const { cluster, random } = context;
  if (leadersFirst) return cluster.byLeadership();
  return shuffled(random, cluster.members).filter((id) => cluster.node(id).isRunning);
}

export type Victims = readonly [NodeId, ...NodeId[]];

/** Claims up to `count` nodes for the time of a fault; says so in the log if there are none. */
export async function withVictims(
  context: NemesisContext,
  name: string,
  from: readonly NodeId[],
  count: number,
  fault: (victims: Victims) => Promise<void>,
): Promise<void> {
  const [first, ...others] = context.claims.take(from, count);
  if (first === undefined) {
    context.log.write({ event: 'skipped', name, detail: 'no node to do it to just now' });
    return;
  }
  try {
    await fault([first, ...others]);
  } finally {
    context.claims.release([first, ...others]);
  }
}

/** Starts nodes again, one a moment after the other. Throws if one does not come up. */
export async function revive(context: NemesisContext, ids: readonly NodeId[]): Promise<void> {
  const { cluster } = context;
  for (const id of ids) {
    if (!cluster.node(id).isRunning) cluster.node(id).start();
    await hold(context, 0, 300);
  }
  for (const id of ids) {
    if (!(await cluster.node(id).isUp())) throw new Error(`node ${id} does not start again`);
  }
}
