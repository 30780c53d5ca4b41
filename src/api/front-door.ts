/**
 * What a front door is to its node, and what the node is to its front doors. A door parses, asks, and formats; it decides
 * nothing, and knows no other door.
 */
import type { BackupDone } from './backup.ts';
import type { ChangeDone, ClusterChange } from './cluster-change.ts';
import type { CustomerAction, CustomerRequest, UsedQuestion } from './customer.ts';
import type { ClusterReport } from './cluster-report.ts';
import type { ListedDone, ListedRequest } from './listed.ts';
import type { Readiness } from './readiness.ts';
import type { LookQuestion, LookRequest } from './look.ts';
import type { RefundQuestion, RefundQuestionDone } from './refund.ts';
import type { AskAnswer, AskDone, Question } from './question.ts';
import type { RulesInForce } from './rules-change.ts';
import type { AccessBehindDoor } from './token.ts';
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
  /** May it go on? @param question well-formed, see `invalidInQuestion`; `done` is told once, perhaps before this returns */
  readonly ask: (question: Question, done: AskDone) => void;
  /** To be told of every answer to `ask`. @param startedMillis when the door had read the request, on the monotonic clock */
  readonly answered: (request: Question, answer: AskAnswer, startedMillis: number) => void;
  /** So many requests that may have been for `ask` were refused for load, before anybody read what they are. */
  readonly refusedUnread: (requests: number) => void;
  /** The same of lists of descriptors, each of which is told what became of it. @param request well-formed, see `invalidInListed` */
  readonly allowListed: (request: ListedRequest, done: ListedDone) => void;
  /** Changes nothing. @param question well-formed; `done` as above */
  readonly look: (question: LookQuestion, done: DoneWith<LookRequest>) => void;
  /** An operator does something to a key. @param request well-formed, as `invalidInCustomer` says; `done` as above */
  readonly operate: (request: CustomerRequest, done: DoneWith<CustomerRequest>) => void;
  /** An operator says how much a key has used. @param question well-formed, as `invalidInUsed` says; `done` as above */
  readonly setUsed: (question: UsedQuestion, done: DoneWith<CustomerRequest>) => void;
  /** The same to a customer, whose key the rules know. @param action of any bounds */
  readonly customer: (customerId: string, action: CustomerAction, done: DoneWith<CustomerRequest>) => void;
  /** @param question well-formed, as `invalidInQuestion` says of the same descriptors and request id; `done` as above */
  readonly refund: (question: RefundQuestion, done: RefundQuestionDone) => void;
  /** A snapshot of one group that this node leads. */
  readonly backup: (group: number, done: BackupDone) => void;
  readonly readiness: () => Readiness;
  /** Clients should go elsewhere: every answer is the last one on its connection. */
  readonly wantsNoClients: () => boolean;
  readonly cluster: () => ClusterReport;
  /** What the doors of all nodes answered. @param query as `validateUsageQuery` gave it; `done` is told once */
  readonly usage: (query: UsageQuery, done: (result: UsageResult) => void) => void;
  /** `done` is told of rules when all partitions decide by them, of tokens when all nodes know, or after a few seconds. */
  readonly change: (change: ClusterChange, done: ChangeDone) => void;
  /** Those in force, as far as this node knows; undefined while it knows none. */
  readonly rules: () => RulesInForce | undefined;
  /** One of them, as it may be given in a change; its body is undefined if there is none such. */
  readonly rule: (id: string) => { readonly version: number; readonly body: unknown } | undefined;
}
