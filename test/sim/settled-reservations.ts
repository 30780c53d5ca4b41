/**
 * Reservations that did not lead to a grant, once there are no faults: none of them is still charged, and the nodes'
 * counters match.
 */
import type { RuleTable } from '../../src/limiter/rules.ts';
import { isGivenBack, limitsAsked, mustStay, type Round, wordsOfAsking } from './described-rounds.ts';
import type { Shadow } from './described-shadows.ts';
import type { SimNode } from './sim-node.ts';
import { check } from './story.ts';

export interface KnownReservation extends Shadow {
  readonly round: Round;
}

export interface SettledReservations {
  readonly reservations: readonly KnownReservation[];
  /** Questions of shadow rules. */
  readonly shadows: readonly Shadow[];
  /** A log charged it and did not refund it. */
  readonly isCharged: (requestId: string) => boolean;
  readonly nodes: readonly SimNode[];
  readonly tables: readonly RuleTable[];
}

/** A node without an answer checks for this long whether there is a grant. */
const DOUBT_MILLIS = 10_000;

export function checkReservations(settled: SettledReservations): void {
  const { reservations, shadows, isCharged, nodes, tables } = settled;
  for (const known of reservations) {
    const { asking, round, own } = known;
    const { node, life } = asking;
    // A node that is no longer a member gets no answers.
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
  for (const node of nodes) checkCounts(node, [...reservations, ...shadows]);
}

/** A node repeats a refund until the charge no longer counts, its id is forgotten, or it can be in no log any more. */
function leastTriedMillis({ own, round }: KnownReservation, tables: readonly RuleTable[]): number {
  const table = tables.find(({ version }) => version === round.version);
  const windows = limitsAsked(own.request).map(({ ruleId }) => {
    return table?.rules.find(({ id }) => id === ruleId)?.windowMillis ?? 0;
  });
  return Math.min(DOUBT_MILLIS, ...windows, ...tables.map((one) => one.requestIdHorizonMillis));
}

/** The counters of refunded and abandoned reservations of a process match what it did. */
function checkCounts(node: SimNode, reservations: readonly Shadow[]): void {
  if (node.core === undefined) return;
  const { counts, pendingCount } = node.core.requests.reservations;
  const asked = reservations.filter(
    ({ asking, own }) => asking.node === node && asking.life === node.life && own.isReleased,
  );
  const released = asked.filter(({ own }) => isGivenBack(own)).length;
  const words = JSON.stringify({ ...counts, pendingCount });
  const left = asked.length - released - pendingCount;
  const expected = JSON.stringify({ released, left, pendingCount });
  check(words === expected, () => `node ${node.id} counts ${words} instead of ${expected}`);
}
