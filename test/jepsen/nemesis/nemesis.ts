/** Defines a nemesis and its context: the cluster, randomness, a log, and claims on nodes that it may harm. */
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
  /** The product does not promise to notice this fault. It runs only if requested by name. */
  readonly isBeyondPromise?: true;
  /** The checkers can allow for this fault only if no other is active, so it is never combined. */
  readonly isAlone?: true;
  /** Why this machine cannot run it; undefined if it can. */
  needs(): string | undefined;
  /** Injects the fault, and resolves when it has healed. Rejects if something that should have healed did not. */
  run(context: NemesisContext): Promise<void>;
}

export interface NemesisContext {
  readonly cluster: ClusterUnderTest;
  readonly random: RandomBelow;
  readonly log: NemesisLog;
  readonly claims: Claims;
  /** Once aborted, everything heals as soon as it can. */
  readonly signal: AbortSignal;
  /** Multiplies all durations. 1 in a real run. */
  readonly tempo: number;
  /**
   * A new node takes the place of one that must not come back. Resolves with its id when all partitions have moved, or
   * with undefined if that failed: the old node is then still a member.
   */
  readonly replaceNode: (context: NemesisContext, oldId: NodeId) => Promise<NodeId | undefined>;
}

export interface NemesisEvent {
  readonly event: 'start' | 'note' | 'end' | 'failed' | 'skipped';
  readonly name: string;
  readonly nodes?: readonly NodeId[];
  readonly detail?: unknown;
}

/** One JSON object a line: the time (of this process's monotonic clock, like the operations), the fault, the nodes. */
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
 * Which nemesis currently uses which node's process or disk, so that concurrent nemeses do not start a node that
 * another one stopped. Also counts the nodes with damaged data, so that these are never more than a minority.
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

  /** The first `count` candidates that are not claimed. */
  take(candidates: readonly NodeId[], count: number): NodeId[] {
    const taken = candidates.filter((id) => !this.#held.has(id)).slice(0, count);
    for (const id of taken) this.#held.add(id);
    return taken;
  }

  release(ids: readonly NodeId[]): void {
    for (const id of ids) this.#held.delete(id);
  }

  /** Few enough nodes are damaged, and a spare could replace one more. */
  get mayDamage(): boolean {
    return this.#spares() > 0 && this.#damaged.size < this.#damagedMax();
  }

  damage(id: NodeId): void {
    this.#damaged.add(id);
  }

  /** The node is undamaged after all, or another node has replaced it. */
  repaired(id: NodeId): void {
    this.#damaged.delete(id);
  }
}

/** Waits a random time between the two, multiplied by the tempo, and little longer once the run is to end. */
export async function hold(
  { random, tempo, signal }: NemesisContext,
  minMillis: number,
  maxMillis: number,
): Promise<void> {
  const millis = Math.ceil(between(random, minMillis, maxMillis) * tempo);
  // A rejection means that the wait was aborted, so it is over.
  await delay(millis, undefined, { signal }).catch(() => undefined);
}

/** Runs one fault between two lines in the log. The second line holds its result. */
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

/** Running members in random order, or ordered by how much they lead. */
export async function candidates(context: NemesisContext, leadersFirst: boolean): Promise<NodeId[]> {
  const { cluster, random } = context;
  if (leadersFirst) return cluster.byLeadership();
  return shuffled(random, cluster.members).filter((id) => cluster.node(id).isRunning);
}

export type Victims = readonly [NodeId, ...NodeId[]];

/** Claims up to `count` nodes for the time of a fault. Logs it if there are none. */
export async function withVictims(
  context: NemesisContext,
  name: string,
  from: readonly NodeId[],
  count: number,
  fault: (victims: Victims) => Promise<void>,
): Promise<void> {
  const [first, ...others] = context.claims.take(from, count);
  if (first === undefined) {
    context.log.write({ event: 'skipped', name, detail: 'no node is free for this fault' });
    return;
  }
  try {
    await fault([first, ...others]);
  } finally {
    context.claims.release([first, ...others]);
  }
}

/** Starts nodes again, one shortly after the other. Throws if one does not come up. */
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
