/**
 * The interface between a node and its API listeners (HTTP, RESP, gRPC). A listener parses requests, passes them to
 * the node, and formats the answers. It decides nothing and knows no other listener.
 */
import type { BackupDone } from './backup.ts';
import type { ChangeDone, ClusterChange } from './cluster-change.ts';
import type { CustomerAction, CustomerRequest, UsedQuestion } from './customer.ts';
import type { ClusterReport, Readiness } from './cluster-report.ts';
import type { ListedDone, ListedRequest } from './listed.ts';
import type { PeekQuestion, PeekRequest } from './peek.ts';
import type { RefundQuestion, RefundQuestionDone } from './refund.ts';
import type { AskAnswer, AskDone, Question } from './question.ts';
import type { RulesInForce } from './rules-change.ts';
import type { AccessApi } from './token.ts';
import type { UsageQuery, UsageResult } from './usage.ts';
import type { DoneWith } from './user-request.ts';

/** One API listener, as its node uses it. */
export interface ApiListener {
  /** Resolves when clients can connect. */
  listen(): Promise<void>;
  /**
   * Accepts no new clients. Resolves when the last request is answered and the last connection is closed. Safe to
   * call twice.
   */
  close(): Promise<void>;
  /** Breaks all open connections, so that `close` resolves. */
  closeAllConnections(): void;
  /** The number of connections that clients hold. */
  connectionCount(): Promise<number>;
}

/**
 * The functions of a node that its API listeners call. They work from before the listeners listen. Every `done`
 * callback is called once, possibly before the function returns.
 */
export interface NodeApi {
  /** Says which caller may ask for which answer. A listener checks this first. */
  readonly access: AccessApi;
  /** Whether the node can take a request now. A listener checks this second. */
  readonly shedding: SheddingApi;
  /** Asks whether a request may go on. @param question well-formed, see `invalidInQuestion` */
  readonly ask: (question: Question, done: AskDone) => void;
  /**
   * A listener calls this for every answer to `ask`. @param startedMillis when the listener had read the request, on
   * the monotonic clock
   */
  readonly answered: (request: Question, answer: AskAnswer, startedMillis: number) => void;
  /** Counts requests that a listener refused because of load before it parsed them. They may have been for `ask`. */
  readonly refusedUnread: (requests: number) => void;
  /**
   * Decides a request of lists of descriptors; the answer has an outcome for each list. @param request well-formed,
   * see `invalidInListed`
   */
  readonly allowListed: (request: ListedRequest, done: ListedDone) => void;
  /** Reads the status of a key. Changes nothing. @param question well-formed */
  readonly peek: (question: PeekQuestion, done: DoneWith<PeekRequest>) => void;
  /** An operator's action on a key. @param request well-formed, see `invalidInCustomer` */
  readonly operate: (request: CustomerRequest, done: DoneWith<CustomerRequest>) => void;
  /** An operator sets the usage of a key. @param question well-formed, see `invalidInUsed` */
  readonly setUsed: (question: UsedQuestion, done: DoneWith<CustomerRequest>) => void;
  /** An operator's action on a customer. The rules give the key of the customer. @param action not checked yet */
  readonly customer: (customerId: string, action: CustomerAction, done: DoneWith<CustomerRequest>) => void;
  /** Refunds a grant. @param question well-formed: `invalidInQuestion` accepts its descriptors and its request id */
  readonly refund: (question: RefundQuestion, done: RefundQuestionDone) => void;
  /** Opens a snapshot of one group that this node leads. */
  readonly backup: (group: number, done: BackupDone) => void;
  /** Whether the node can decide requests. */
  readonly readiness: () => Readiness;
  /** True if clients should go to another node: a listener then closes each connection after its next answer. */
  readonly wantsNoClients: () => boolean;
  /** The cluster as this node sees it. */
  readonly cluster: () => ClusterReport;
  /** The counted answers of the listeners of all nodes. @param query from `validateUsageQuery` */
  readonly usage: (query: UsageQuery, done: (result: UsageResult) => void) => void;
  /**
   * Changes the cluster. `done` is called when all partitions decide by the new rules, when all nodes know the new
   * tokens, or after a few seconds.
   */
  readonly change: (change: ClusterChange, done: ChangeDone) => void;
  /** The rules in force as far as this node knows; undefined if it knows none. */
  readonly rules: () => RulesInForce | undefined;
  /** One rule, in the form in which a change may contain it. `body` is undefined if there is no such rule. */
  readonly rule: (id: string) => { readonly version: number; readonly body: unknown } | undefined;
}

/** The number of open requests of one client. Only the load shedder changes it. */
export interface ClientLoad {
  open: number;
}

/**
 * How a listener asks whether its node can take one more request. A request that it cannot take is refused at once,
 * as `overloaded` with `proposed` false.
 */
export interface SheddingApi {
  /**
   * Whether a request of `client` is refused now. A refusal is counted.
   *
   * @param client the id of its token, or its address if it has none
   * @param isLate the request waited unread while the node was busy. During such a time only requests that are
   *   answered quickly are admitted, and afterwards more only step by step.
   */
  refuses(client: string, isLate?: boolean): boolean;
  /** True if the node has no CPU time left: unread requests wait for the node, not for a disk or for the client. */
  readonly isBusy: boolean;
  /** Counts `requests` more open requests, until `left` is called with the result. */
  entered(client: string, requests: number): ClientLoad;
  left(load: ClientLoad, requests: number): void;
}

/** The load shedding functions for requests that other nodes forward. */
export interface SheddingOfForwarded {
  /** Whether one more forwarded request is refused. If not, it counts as open until `leftForwarded`. */
  maybeRefuseForwarded(): boolean;
  leftForwarded(): void;
}

/** The shortest CPU profile, in seconds. */
export const CPU_PROFILE_SECONDS_MIN = 1;
/** The longest CPU profile, in seconds. */
export const CPU_PROFILE_SECONDS_MAX = 60;
/** The length of a CPU profile if the request names none, in seconds. */
export const CPU_PROFILE_SECONDS_DEFAULT = 10;

/** A diagnosis that an operator asks for. */
export type WantedDiagnosis =
  /** Blocks the event loop while it is taken. Contains every string in memory, including user ids and secrets. */
  | { readonly kind: 'heapSnapshot' }
  /** `seconds`: `CPU_PROFILE_SECONDS_MIN` to `CPU_PROFILE_SECONDS_MAX`. */
  | { readonly kind: 'cpuProfile'; readonly seconds: number };

/** A diagnosis in progress. */
export interface OpenDiagnosis {
  /** Starts when it is first read. Fails if the node stops before it is complete. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /**
   * The caller must call this, even if it read nothing. Calling it again is harmless. Only then can another diagnosis
   * start.
   */
  readonly close: () => void;
}

/** The diagnostic functions of a node: with them a listener takes a heap snapshot or a CPU profile of its node. */
export interface DiagnosticsApi {
  /** Undefined: another diagnosis is in progress. */
  readonly diagnose: (wanted: WantedDiagnosis) => OpenDiagnosis | undefined;
}
