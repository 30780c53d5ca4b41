/** Types of the messages between the bench and its load processes: the job, and the result. */
import type { LoadRuleId, WorkloadId } from '../workloads.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** How a request is written in RESP, and how its answer is read. */
export interface RespForm {
  /** Arguments of the command for each rule; `{key}` stands for the key. */
  readonly commands: Readonly<Record<LoadRuleId, readonly string[]>>;
  /**
   * First integer in the answer to a granted request: 1 for the script, 0 for CL.THROTTLE, which answers "limited: no".
   */
  readonly grantValue: 0 | 1;
  /** Replicas that the WAIT at the end of each pipeline must report before its requests count. 0: no WAIT. */
  readonly waitForReplicas: number;
}

interface LoadJobBase {
  readonly workload: WorkloadId;
  /** A whole number of 32 bits. */
  readonly seed: number;
  readonly addresses: readonly Address[];
  /** Clients use TLS and this token. Absent: no TLS and no token. */
  readonly token?: string;
  readonly connections: number;
  readonly warmUpMillis: number;
  readonly measuredMillis: number;
}

export interface RespJob extends LoadJobBase {
  readonly kind: 'resp';
  readonly form: RespForm;
  /** Requests per write. The next ones are written when all of these are answered. */
  readonly pipeline: number;
  /** Each connection sends only keys whose slot its node serves, by `CLUSTER SLOTS` of the first address. */
  readonly isClusterAware: boolean;
}

export interface HttpJob extends LoadJobBase {
  readonly kind: 'http';
  /** Requests per body. 1 uses the plain route, more use the batch route. */
  readonly batch: number;
}

export interface OpenLoopJob extends LoadJobBase {
  readonly kind: 'open-loop';
  /** Rate of all addresses together. */
  readonly requestsPerSecond: number;
}

/** HTTP load at a fixed rate through `connections`, with one request at a time on each. */
export interface HttpOpenLoopJob extends LoadJobBase {
  readonly kind: 'http-open-loop';
  /** Rate of all addresses together. */
  readonly requestsPerSecond: number;
}

export interface RespOpenLoopJob extends LoadJobBase {
  readonly kind: 'resp-open-loop';
  readonly form: RespForm;
  /** Rate of all addresses together. */
  readonly requestsPerSecond: number;
  /**
   * Source addresses of the connections, used in turn: nodes see one client for each address. Absent: the system
   * chooses.
   */
  readonly localAddresses?: readonly string[];
}

/** Databases on which a limiter runs, with as many open requests as connections. */
export type LimiterKind = 'etcd' | 'postgres';

export interface LimiterJob extends LoadJobBase {
  readonly kind: 'limiter';
  readonly limiter: LimiterKind;
}

export type LoadJob = RespJob | LimiterJob | HttpJob | OpenLoopJob | HttpOpenLoopJob | RespOpenLoopJob;

export interface LoadResult {
  readonly grants: number;
  readonly denials: number;
  /** Refused, failed, or answered with anything other than a decision. */
  readonly errors: number;
  /** Actual measured time. */
  readonly seconds: number;
  /** Result of `Latencies.encode`. */
  readonly latencies: string;
  /** Processor time of the load process during the measurement. */
  readonly loadCpuSeconds: number;
  /** Due requests that were not sent. RESP: unwritten at the end. HTTP: no connection was free. Absent: not counted. */
  readonly unsent?: number;
}

/** Messages of a load process to its parent, in this order. */
export type LoadMessage =
  | { readonly type: 'measuring' }
  | { readonly type: 'measured'; readonly result: LoadResult }
  | { readonly type: 'failed'; readonly message: string };
