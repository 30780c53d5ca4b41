/**
 * A thing under load: whatever answers requests for grants, as the bench sees it. It is started anew for each round, in
 * an empty directory on free ports, and nothing else of the bench runs meanwhile.
 */
import type { Address, LimiterKind, RespForm } from '../load/load-job.ts';

/** Where HTTP requests go, as `POST /v1/allow` with `userId` and `rule`. */
export interface HttpDoor {
  readonly addresses: readonly Address[];
  /** Absent: it is open, and speaks plainly. */
  readonly token?: string;
}

/** Where commands of the Redis protocol go, and which. */
export interface RespDoor {
  readonly addresses: readonly Address[];
  readonly token?: string;
  readonly form: RespForm;
}

/** What is asked through a client library, by a limiter that runs in the load process itself. */
export interface LimiterDoor {
  readonly kind: LimiterKind;
  readonly addresses: readonly Address[];
}

/** Numbers that only grow, of all processes together. */
export interface WorkCounters {
  /** Synced disk writes. */
  readonly syncs: number;
  /** Log entries that were committed, each counted once for the cluster. */
  readonly entries: number;
}

/** It runs and answers. */
export interface RunningThing {
  readonly pids: readonly number[];
  /** Absent: it has no such door, in this version perhaps. */
  readonly http?: HttpDoor;
  readonly resp?: RespDoor;
  readonly limiter?: LimiterDoor;
  /** Absent: it does not tell. */
  readonly counters?: () => Promise<WorkCounters>;
  stop(): Promise<void>;
}

/** What a grant means. */
export interface GrantPromise {
  /** Disks that have it, synced, before it is answered. */
  readonly disks: number;
  /** Which grants are lost when a server fails for good and another takes over. */
  readonly failoverLoses: 'nothing' | 'some' | 'all' | '-';
  readonly inWords: string;
}

export interface ThingUnderLoad {
  readonly id: string;
  readonly name: string;
  readonly promise: GrantPromise;
  /** Why it cannot run here: a program that is not installed. Undefined if it can. */
  readonly missing?: () => string | undefined;
  start(): Promise<RunningThing>;
}
