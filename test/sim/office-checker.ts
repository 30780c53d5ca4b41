/**
 * What a leader may answer at once, and what it must. It reads its state only when it has applied an entry of its own
 * term, and with it all that former leaders decided (Raft, dissertation, 6.4). And what no grant can ever follow from is
 * refused before it costs anybody a write: a cost above the limit that is in force, and somebody new where there is no
 * room to remember anybody.
 */
import type { GroupApplication } from '../../raft/driver/multi-raft.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import { Partition } from '../../src/partition/partition.ts';
import type { Committed } from './group-history.ts';
import { type Asked, askedBy } from './id-ledger.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface OfficeCheckerInit {
  readonly entryAt: (group: GroupId, index: number) => Committed | undefined;
  readonly tableAt: (group: GroupId, index: number) => RuleTable | undefined;
  /** After that entry something is remembered of this user under this rule. */
  readonly isKnownAt: (group: GroupId, index: number, asked: Asked) => boolean;
  readonly nodes: () => readonly SimNode[];
  readonly now: () => number;
  readonly after: (delayMillis: number, run: () => void) => void;
}

const LOOK_MILLIS = 200;
/** A node has noticed by then that it remembers more than it may. */
const NOTICED_MILLIS = 2_000;
/** So much that it does not come and go between two looks. */
const OVER = 1.05;

export class OfficeChecker {
  readonly #init: OfficeCheckerInit;
  /** Since when a process remembers more than it may. */
  readonly #over = new Map<NodeId, { readonly life: number; readonly sinceMillis: number }>();
  /** When a partition was last asked for a request that it did not answer at once. */
  readonly #taken = new Map<string, number>();

  constructor(init: OfficeCheckerInit) {
    this.#init = init;
    this.#lookLater();
  }

  #lookLater(): void {
    const { after, nodes, now } = this.#init;
    after(LOOK_MILLIS, () => {
      for (const node of nodes()) {
        if (!isOver(node)) this.#over.delete(node.id);
        else if (this.#over.get(node.id)?.life !== node.life)
          this.#over.set(node.id, { life: node.life, sinceMillis: now() });
      }
      this.#lookLater();
    });
  }

  /** `applied` says up to where the replica has applied its log. */
  observe(node: NodeId, group: GroupId, app: GroupApplication, applied: () => number): void {
    if (!(app instanceof Partition)) return;
    let office: number | undefined;
    const statusChanged = app.statusChanged.bind(app);
    app.statusChanged = (status) => {
      office = status.isLeader ? status.term : undefined;
      statusChanged(status);
    };
    const decide = app.decide.bind(app);
    app.decide = (request, deadlineMillis, done) => {
      const index = applied();
      const mayRead = office !== undefined && this.#init.entryAt(group, index)?.entry.term === office;
      let isAtOnce = true;
      let isAnswered = false;
      const isTooMuch = mayRead && this.#isTooMuch(group, index, request);
      decide(request, deadlineMillis, (answer) => {
        check(
          !isTooMuch || answer.kind === 'invalid',
          () =>
            `node ${node} answers ${JSON.stringify(answer)} in group ${group} to ${JSON.stringify(request)}`,
        );
        check(
          answer.kind !== 'decision' || !isAtOnce || mayRead,
          () => `node ${node} decides by entry ${index} of group ${group} what it leads in term ${office}`,
        );
        isAnswered = true;
        done(answer);
      });
      isAtOnce = false;
      if (!isAnswered) this.#taken.set(keyOf(node, request), this.#init.now());
      check(
        isAnswered || !isTooMuch,
        () => `node ${node} proposes in group ${group} what is above the limit: ${JSON.stringify(request)}`,
      );
      check(
        isAnswered || !mayRead || !this.#hasNoRoom(node) || !this.#isSomebodyNew(group, index, request),
        () => `node ${node} has no room, and proposes in group ${group}: ${JSON.stringify(request)}`,
      );
    };
  }

  /** Since `sinceMillis` a partition on `node` was asked for this, and did not answer at once. */
  hasTaken(node: NodeId, request: AllowRequest, sinceMillis: number): boolean {
    return (this.#taken.get(keyOf(node, request)) ?? -Infinity) >= sinceMillis;
  }

  #hasNoRoom(node: NodeId): boolean {
    const over = this.#over.get(node);
    const found = this.#init.nodes().find(({ id }) => id === node);
    if (over === undefined || found === undefined) return false;
    if (!isOver(found)) {
      this.#over.delete(node);
      return false;
    }
    return over.life === found.life && this.#init.now() - over.sinceMillis >= NOTICED_MILLIS;
  }

  #isSomebodyNew(group: GroupId, index: number, request: AllowRequest): boolean {
    return request.requestId === undefined && !this.#init.isKnownAt(group, index, askedBy(request));
  }

  /** Whoever has an id may wait for the answer of an earlier attempt. */
  #isTooMuch(group: GroupId, index: number, { ruleId, cost = 1, requestId }: AllowRequest): boolean {
    if (requestId !== undefined) return false;
    const rules = this.#init.tableAt(group, index)?.rules;
    const rule = ruleId === undefined ? rules?.[0] : rules?.find(({ id }) => id === ruleId);
    return rule !== undefined && cost > rule.limit;
  }
}

function isOver({ core, stateBytesMax, isRunning }: SimNode): boolean {
  if (core === undefined || !isRunning) return false;
  let bytes = 0;
  for (const { stateBytes } of core.partitions.values()) bytes += stateBytes;
  return bytes > stateBytesMax * OVER;
}

function keyOf(node: NodeId, { userId, requestId }: AllowRequest): string {
  return `${node}/${userId}/${requestId ?? ''}`;
}
