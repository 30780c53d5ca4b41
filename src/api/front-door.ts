/**
 * What a front door is to its node, and what the node is to its front doors. A door parses, asks, and formats; it decides
 * nothing, and knows no other door.
 */
import type { AllowDone } from './answer.ts';
import type { BackupDone } from './backup.ts';
import type { CustomerAction, CustomerRequest } from './customer.ts';
import type { ClusterReport } from './cluster-report.ts';
import type { DrainChange, DrainResult } from './drain.ts';
import type { ListedDone, ListedRequest } from './listed.ts';
import type { NodeChange, NodeChangeResult } from './node-change.ts';
import type { Readiness } from './readiness.ts';
import type { LookRequest } from './look.ts';
import type { DescribedRefund, DescribedRefundDone, RefundRequest } from './refund.ts';
import type { DescribedAnswer, DescribedDone, DescribedRequest } from './described.ts';
import type { AllowRequest } from './request.ts';
import type { RulesChange, RulesChangeResult, RulesInForce } from './rules-change.ts';
import type { AccessBehindDoor } from './token.ts';
import type { LabelChange, LabelResult } from './label-change.ts';
import type { UpgradeChange, UpgradeResult } from './upgrade.ts';
import type { UsageQuery, UsageResult } from './usage.ts';
import type { SheddingBehindDoor } from './shedding.ts';
import type { DoneWith } from './user-request.ts';

export interface FrontDoor {
  /** Resolves when clients can connect. */
  listen(): Promise<void>;
  /** Takes no new clients; resolves when the last request is answered and the last connection closed. Safe to call twice. */
  close(): Promise<void>;
  /** Breaks what is still open, so that `close` resolves. */
  closeAllConnections(): void;
  /** How many connections clients hold. */
  connectionCount(): Promise<number>;
}

/** What doors may ask of the node behind them, at any time from before they listen. */
export interface NodeBehindDoor {
  /** Who may ask what: to be asked before everything else. */
  readonly access: AccessBehindDoor;
  /** Whether this node can take a request now: to be asked next. */
  readonly shedding: SheddingBehindDoor;
  /** @param request well-formed, see `invalidIn`; `done` is told once, perhaps before this returns */
  readonly allow: (request: AllowRequest, done: AllowDone) => void;
  /** To be told of every answer to `allow`. @param startedMillis when the door had read the request, on the monotonic clock */
  readonly answered: (
    request: AllowRequest | DescribedRequest,
    answer: DescribedAnswer,
    startedMillis: number,
  ) => void;
  /** So many requests that may have been for `allow` were refused for load, before anybody read what they are. */
  readonly refusedUnread: (requests: number) => void;
  /** Requests that name no rule are under the limits that rules find, as far as this node knows. */
  readonly hasDocument: () => boolean;
  /** By the default rule, or 503 where a document is in force after all. @param request as for `allow`, and names no rule; `done` as above */
  readonly allowByDefault: (request: AllowRequest, done: AllowDone) => void;
  /** Under all limits that the rules find. @param request well-formed, see `invalidInDescribed`; `done` as above */
  readonly allowDescribed: (request: DescribedRequest, done: DescribedDone) => void;
  /** The same of lists of descriptors, each of which is told what became of it. @param request well-formed, see `invalidInListed` */
  readonly allowListed: (request: ListedRequest, done: ListedDone) => void;
  /** Changes nothing. @param request well-formed, as `invalidIn` says of the same user and rule; `done` as above */
  readonly look: (request: LookRequest, done: DoneWith<LookRequest>) => void;
  /** @param request well-formed, as `invalidIn` says of the same user and request id; `done` as above */
  readonly refund: (request: RefundRequest, done: DoneWith<RefundRequest>) => void;
  /** An operator does something to a key. @param request well-formed, as `invalidInCustomer` says; `done` as above */
  readonly operate: (request: CustomerRequest, done: DoneWith<CustomerRequest>) => void;
  /** The same to a customer, whose key the rules know. @param action of any bounds */
  readonly customer: (customerId: string, action: CustomerAction, done: DoneWith<CustomerRequest>) => void;
  /** @param request well-formed, as `invalidInDescribed` says of the same descriptors and request id; `done` as above */
  readonly refundDescribed: (request: DescribedRefund, done: DescribedRefundDone) => void;
  /** A snapshot of one group that this node leads. */
  readonly backup: (group: number, done: BackupDone) => void;
  readonly readiness: () => Readiness;
  /** Clients should go elsewhere: every answer is the last one on its connection. */
  readonly wantsNoClients: () => boolean;
  readonly cluster: () => ClusterReport;
  /** What the doors of all nodes answered. @param query as `validateUsageQuery` gave it; `done` is told once */
  readonly usage: (query: UsageQuery, done: (result: UsageResult) => void) => void;
  readonly changeNodes: (change: NodeChange, done: (result: NodeChangeResult) => void) => void;
  readonly drain: (change: DrainChange, done: (result: DrainResult) => void) => void;
  /** Says otherwise where a node stands. @param change as `validateLabelChange` gave it; `done` is told once */
  readonly label: (change: LabelChange, done: (result: LabelResult) => void) => void;
  /** Raises the version of the cluster. @param change as `validateUpgrade` gave it; `done` is told once */
  readonly upgrade: (change: UpgradeChange, done: (result: UpgradeResult) => void) => void;
  /** Those in force, as far as this node knows; undefined while it knows none. */
  readonly rules: () => RulesInForce | undefined;
  /** One of them, as it may be given in a change; its body is undefined if there is none such. */
  readonly rule: (id: string) => { readonly version: number; readonly body: unknown } | undefined;
  /** `done` is told when all partitions decide by them, or after a few seconds. */
  readonly changeRules: (change: RulesChange, done: (result: RulesChangeResult) => void) => void;
}
