/**
 * Collects the usage figures of all nodes: asks the others, waits until a deadline, and adds up. Nodes that do not
 * answer are listed as silent.
 */
import type { NodeId } from '../../raft/types.ts';
import { USAGE_COLUMNS, type UsageQuery, type UsageResult } from '../api/usage.ts';
import { type NodeUsage, reportOf, zeros } from '../usage/node-usage.ts';
import { Calls, type Question } from '../wire/calls.ts';
import { FIRST_ID_BOUND, type NodeCoreInit } from './node-core-init.ts';
import {
  encodeUsageQuestion,
  encodeUsageReport,
  type UsageQuestion,
  type UsageReported,
} from '../wire/usage.ts';

/** A node that has not answered by then is listed as silent. */
export const USAGE_DEADLINE_MILLIS = 1_000;
/** The maximum number of open questions of clients; more are refused. Each sends one call to each node. */
export const USAGE_QUESTIONS_MAX = 16;
const MINUTE_MILLIS = 60_000;

type Asked = Question<NodeUsage | undefined>;
type UsageExchangeInit = Pick<NodeCoreInit, 'nodeId' | 'random' | 'send' | 'clocks' | 'usage'>;

/** The exchange of one node. */
export class UsageExchange {
  readonly #init: UsageExchangeInit;
  readonly #nodes: () => readonly NodeId[];
  /** Open calls; the result is undefined if the node did not answer. Created with the first question. */
  #calls: Calls<Asked, NodeUsage | undefined> | undefined;
  #questions = 0;

  /** @param nodes of the cluster; may include this one */
  constructor(init: UsageExchangeInit, nodes: () => readonly NodeId[]) {
    this.#init = init;
    this.#nodes = nodes;
  }

  /**
   * Asks all nodes. @param done called once, at the latest one tick after the deadline, perhaps before this returns
   */
  ask(query: UsageQuery, done: (result: UsageResult) => void): void {
    const { nodeId, clocks } = this.#init;
    if (this.#questions >= USAGE_QUESTIONS_MAX) {
      done({ ok: false, reason: 'tooMany' });
      return;
    }
    const untilMinute = Math.floor(clocks.wallMillis() / MINUTE_MILLIS);
    const reported = new Map([[nodeId, this.#counted(query, untilMinute)]]);
    const silent: NodeId[] = [];
    const others = this.#nodes().filter((node) => node !== nodeId);
    this.#questions += 1;
    let waitsFor = others.length;
    const maybeEnd = (): void => {
      if (waitsFor > 0) return;
      this.#questions -= 1;
      done({ ok: true, report: reportOf({ query, untilMinute, reported, silent }) });
    };
    const until = clocks.monotonicMillis() + USAGE_DEADLINE_MILLIS;
    for (const to of others)
      this.#call({ to, query, untilMinute, until }, (usage) => {
        if (usage === undefined) silent.push(to);
        else reported.set(to, usage);
        waitsFor -= 1;
        maybeEnd();
      });
    if (others.length === 0) maybeEnd();
  }

  #call(
    {
      to,
      query,
      untilMinute,
      until,
    }: Omit<UsageQuestion, 'id'> & { readonly to: NodeId; readonly until: number },
    done: (usage: NodeUsage | undefined) => void,
  ): void {
    const calls = (this.#calls ??= new Calls<Asked, NodeUsage | undefined>({
      firstId: this.#init.random(FIRST_ID_BOUND),
      // Bounded by `USAGE_QUESTIONS_MAX`, however many nodes there are.
      outstandingMax: Number.POSITIVE_INFINITY,
      lateMax: 0,
      notSent: () => undefined,
      lost: undefined,
    }));
    const call = calls.maybeAsk({ to, done }, until);
    if (call === undefined) return;
    const payload = encodeUsageQuestion({ id: call.id, query, untilMinute });
    if (this.#init.send(to, 'usage', payload)) call.isSent = true;
    else calls.notSent(call);
  }

  /** Answers the question of another node. */
  receiveQuestion(from: NodeId, { id, query, untilMinute }: UsageQuestion): void {
    this.#init.send(
      from,
      'usageReported',
      encodeUsageReport({ id, usage: this.#counted(query, untilMinute) }),
    );
  }

  /** Takes the answer of another node. */
  receiveReported(from: NodeId, { id, usage }: UsageReported): void {
    this.#calls?.answered(from, id, usage);
  }

  /** The connection to `peer` broke. */
  peerDisconnected(peer: NodeId): void {
    this.#calls?.disconnected(peer);
  }

  /** Call once per tick. */
  tick(): void {
    this.#calls?.expire(this.#init.clocks.monotonicMillis());
  }

  #counted(query: UsageQuery, untilMinute: number): NodeUsage {
    const none = { keys: [], othersMax: 0 };
    return (
      this.#init.usage?.(query, untilMinute) ?? {
        rules: [],
        history: zeros(query.minutes * USAGE_COLUMNS.length),
        topFromMinute: untilMinute,
        allowed: none,
        denied: none,
      }
    );
  }
}
