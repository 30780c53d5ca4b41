/** What a load process is told to do, and what it reports. Types only: both sides of the pipe between them use these. */
import type { LoadRuleId, WorkloadId } from '../workloads.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How a request is written in RESP, and how its answer is read. */
export interface RespForm {
  /** The command of a request under each rule, as arguments; `{key}` stands for the key. */
  readonly commands: Readonly<Record<LoadRuleId, readonly string[]>>;
  /** The first integer of a grant: 1 for a script that answers yes, 0 for CL.THROTTLE, which answers "limited: no". */
  readonly grantValue: 0 | 1;
  /** A WAIT ends every pipeline, and its requests count only if that many replicas have them. 0: none does. */
  readonly waitForReplicas: number;
}

interface LoadJobBase {
  readonly workload: WorkloadId;
  /** A whole number of 32 bits. */
  readonly seed: number;
  readonly addresses: readonly Address[];
  /** The doors speak TLS, and every client shows this token. Absent: they are open. */
  readonly token?: string;
  readonly connections: number;
  readonly warmUpMillis: number;
  readonly measuredMillis: number;
}

export interface RespJob extends LoadJobBase {
  readonly kind: 'resp';
  readonly form: RespForm;
  /** Requests per write; the next ones are written when all of these are answered. */
  readonly pipeline: number;
  /** Each connection sends only keys whose slot its node serves, as `CLUSTER SLOTS` of the first address says. */
  readonly isClusterAware: boolean;
}

export interface HttpJob extends LoadJobBase {
  readonly kind: 'http';
  /** Requests per body; 1 is a plain request, more go to the batch route. */
  readonly batch: number;
}

export interface OpenLoopJob extends LoadJobBase {
  readonly kind: 'open-loop';
  /** Over all addresses together. */
  readonly requestsPerSecond: number;
}

/** Through as many connections, with a request at a time on each. */
export interface HttpOpenLoopJob extends LoadJobBase {
  readonly kind: 'http-open-loop';
  /** Over all addresses together. */
  readonly requestsPerSecond: number;
}

export interface RespOpenLoopJob extends LoadJobBase {
  readonly kind: 'resp-open-loop';
  readonly form: RespForm;
  /** Over all addresses together. */
  readonly requestsPerSecond: number;
  /** Where the connections come from, in turn: to a node each is a client. Absent: the system chooses. */
  readonly localAddresses?: readonly string[];
}

/** What limits by a database through its client library, with as many requests open as there are connections. */
export type LimiterKind = 'etcd' | 'postgres';

export interface LimiterJob extends LoadJobBase {
  readonly kind: 'limiter';
  readonly limiter: LimiterKind;
}

export type LoadJob = RespJob | LimiterJob | HttpJob | OpenLoopJob | HttpOpenLoopJob | RespOpenLoopJob;

export interface LoadResult {
  readonly grants: number;
  readonly denials: number;
  /** Neither granted nor denied: refused, failed, or an answer of another kind. */
  readonly errors: number;
  /** How long was really measured. */
  readonly seconds: number;
  /** `Latencies.encode`. */
  readonly latencies: string;
  /** Of the load process itself while it measured. */
  readonly loadCpuSeconds: number;
  /** RESP: requests that were due when it ended and had not been written. HTTP: those that found no connection free. Absent: nobody counted. */
  readonly unsent?: number;
}

/** From the load process to the one that started it, in this order. */
export type LoadMessage =
  | { readonly type: 'measuring' }
  | { readonly type: 'measured'; readonly result: LoadResult }
  | { readonly type: 'failed'; readonly message: string };
