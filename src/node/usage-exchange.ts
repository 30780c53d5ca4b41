/**
 * What the doors of all nodes answered, asked for at this one: it asks the others, waits for them until a deadline, and adds up. Who
 * does not answer is named, and missing. It counts nothing itself.
 */
import type { NodeId } from '../../raft/types.ts';
import { USAGE_COLUMNS, type UsageQuery, type UsageResult } from '../api/usage.ts';
import { type NodeUsage, reportOf, zeros } from '../usage/node-usage.ts';
import { Calls, type Question } from '../wire/calls.ts';
import { FIRST_ID_BOUND, type NodeCoreInit } from './node-core-init.ts';
import { encodeUsageQuestion, encodeUsageTold, type UsageQuestion, type UsageTold } from '../wire/usage.ts';

/** A node that has not answered by then is named as silent. */
export const USAGE_DEADLINE_MILLIS = 1_000;
/** Questions of clients that wait for other nodes; one more is refused. Each is one call to each node. */
export const USAGE_QUESTIONS_MAX = 16;
const MINUTE_MILLIS = 60_000;

type Asked = Question<NodeUsage | undefined>;
type UsageExchangeInit = Pick<NodeCoreInit, 'nodeId' | 'random' | 'send' | 'clocks' | 'usage'>;

export class UsageExchange {
  readonly #init: UsageExchangeInit;
  readonly #nodes: () => readonly NodeId[];
  /** Undefined as a result: the node did not answer. None before the first question. */
  #calls: Calls<Asked, NodeUsage | undefined> | undefined;
  #questions = 0;

  /** @param nodes of the cluster, this one perhaps among them */
  constructor(init: UsageExchangeInit, nodes: () => readonly NodeId[]) {
    this.#init = init;
    this.#nodes = nodes;
  }

  /** @param done told once, at the latest a tick after the deadline, perhaps before this returns */
  ask(query: UsageQuery, done: (result: UsageResult) => void): void {
    const { nodeId, clocks } = this.#init;
    if (this.#questions >= USAGE_QUESTIONS_MAX) {
      done({ ok: false, reason: 'tooMany' });
      return;
    }
    const untilMinute = Math.floor(clocks.wallMillis() / MINUTE_MILLIS);
    const told = new Map([[nodeId, this.#counted(query, untilMinute)]]);
    const silent: NodeId[] = [];
    const others = this.#nodes().filter((node) => node !== nodeId);
    this.#questions += 1;
    let waitsFor = others.length;
    const maybeEnd = (): void => {
      if (waitsFor > 0) return;
      this.#questions -= 1;
      done({ ok: true, report: reportOf({ query, untilMinute, told, silent }) });
    };
    const until = clocks.monotonicMillis() + USAGE_DEADLINE_MILLIS;
    for (const to of others)
      this.#call({ to, query, untilMinute, until }, (usage) => {
        if (usage === undefined) silent.push(to);
        else told.set(to, usage);
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
      // Bounded by the questions, whatever the number of nodes.
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

  /** A node asks what was counted here. */
  receiveQuestion(from: NodeId, { id, query, untilMinute }: UsageQuestion): void {
    this.#init.send(from, 'usageTold', encodeUsageTold({ id, usage: this.#counted(query, untilMinute) }));
  }

  receiveTold(from: NodeId, { id, usage }: UsageTold): void {
    this.#calls?.answered(from, id, usage);
  }

  peerDisconnected(peer: NodeId): void {
    this.#calls?.disconnected(peer);
  }

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
