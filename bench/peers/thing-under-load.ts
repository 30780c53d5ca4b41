/**
 * The interface of a thing under load, that is, of any system that answers requests for grants. The bench starts it for
 * each round in an empty directory on free ports, and runs nothing else meanwhile.
 */
import type { Address, LimiterKind, RespForm } from '../load/load-job.ts';

/** Addresses that answer `POST /v1/allow` with `userId` and `rule`. */
export interface HttpListener {
  readonly addresses: readonly Address[];
  /** Absent: no TLS and no token. */
  readonly token?: string;
}

/** Addresses that speak the Redis protocol, and the commands to send. */
export interface RespListener {
  readonly addresses: readonly Address[];
  readonly token?: string;
  readonly form: RespForm;
}

/** A database that a limiter in the load process uses through a client library. */
export interface LimiterListener {
  readonly kind: LimiterKind;
  readonly addresses: readonly Address[];
}

/** Counters that only grow, summed over all processes. */
export interface WorkCounters {
  /** Synced disk writes. */
  readonly syncs: number;
  /** Committed log entries, each counted once for the cluster. */
  readonly entries: number;
}

/** A started thing that is ready to answer. */
export interface RunningThing {
  readonly pids: readonly number[];
  /** Absent if the thing has no such listener. */
  readonly http?: HttpListener;
  readonly resp?: RespListener;
  readonly limiter?: LimiterListener;
  /** Absent if the thing does not report them. */
  readonly counters?: () => Promise<WorkCounters>;
  stop(): Promise<void>;
}

/** What a grant guarantees. */
export interface GrantPromise {
  /** Disks that have synced the grant before it is answered. */
  readonly disks: number;
  /** Which grants are lost when a server fails for good and another takes over. */
  readonly failoverLoses: 'nothing' | 'some' | 'all' | '-';
  readonly inWords: string;
}

export interface ThingUnderLoad {
  readonly id: string;
  readonly name: string;
  readonly promise: GrantPromise;
  /** Why the thing cannot run here, such as a program that is not installed; undefined if it can. */
  readonly missing?: () => string | undefined;
  start(): Promise<RunningThing>;
}
