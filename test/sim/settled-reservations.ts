/** What became of all that nodes reserved in vain, once nothing is broken: nothing of it is charged, and they count what they did. */
import type { RuleTable } from '../../src/limiter/rules.ts';
import { isGivenBack, limitsAsked, mustStay, type Round, wordsOfAsking } from './described-rounds.ts';
import type { Trial } from './described-trials.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface KnownReservation extends Trial {
  readonly round: Round;
}

export interface SettledReservations {
  readonly reservations: readonly KnownReservation[];
  /** What rules in shadow were asked. */
  readonly trials: readonly Trial[];
  /** A log charged it, and did not take it back. */
  readonly isCharged: (requestId: string) => boolean;
  readonly nodes: readonly SimNode[];
  readonly tables: readonly RuleTable[];
}

/** Whoever heard of no grant looks for so long whether there is one. */
const DOUBT_MILLIS = 10_000;

export function checkReservations(settled: SettledReservations): void {
  const { reservations, trials, isCharged, nodes, tables } = settled;
  for (const known of reservations) {
    const { asking, round, own } = known;
    const { node, life } = asking;
    // Who belongs to the cluster no more is answered by nobody.
    const isGone = node.core === undefined || node.core.isExcluded;
    const isLost = asking.isLost || node.life !== life || isGone;
    if (isLost || mustStay(round) || !isCharged(own.request.requestId ?? '')) continue;
    const triedMillis = (own.release?.at ?? own.askedAt) - own.askedAt;
    const isLeft = own.isReleased && triedMillis >= leastTriedMillis(known, tables);
    check(
      isLeft,
      () => `${own.request.requestId} of ${wordsOfAsking(asking)} is still charged: ${JSON.stringify(own)}`,
    );
  }
  for (const node of nodes) checkCounts(node, [...reservations, ...trials]);
}

/** A node goes on asking until what is charged counts no more, its id is forgotten, or it can be in no log any more. */
function leastTriedMillis({ own, round }: KnownReservation, tables: readonly RuleTable[]): number {
  const table = tables.find(({ version }) => version === round.version);
  const windows = limitsAsked(own.request).map(({ ruleId }) => {
    return table?.rules.find(({ id }) => id === ruleId)?.windowMillis ?? 0;
  });
  return Math.min(DOUBT_MILLIS, ...windows, ...tables.map((one) => one.requestIdHorizonMillis));
}

/** What a process says that it gave back, and left, is what it did. */
function checkCounts(node: SimNode, reservations: readonly Trial[]): void {
  if (node.core === undefined) return;
  const { counts, pendingCount } = node.core.requests.reservations;
  const asked = reservations.filter(
    ({ asking, own }) => asking.node === node && asking.life === node.life && own.isReleased,
  );
  const released = asked.filter(({ own }) => isGivenBack(own)).length;
  const words = JSON.stringify({ ...counts, pendingCount });
  const left = asked.length - released - pendingCount;
  const expected = JSON.stringify({ released, left, pendingCount });
  check(words === expected, () => `node ${node.id} counts ${words}, and did ${expected}`);
}
