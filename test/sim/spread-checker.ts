/**
 * Checks which copies share a host or a zone in every committed placement, by the labels alone and by trying all
 * possible rows:
 *
 * - Labelled nodes never share a host for copies of one partition if there are enough hosts. No row shares more hosts
 *   than necessary, and no row shares more zones than the best of those.
 * - A change moves a copy of each partition whose spread it would make worse. Besides these it moves no more than the
 *   part of one node, or than nodes held beyond their parts.
 */
import type { NodeId } from '../../raft/types.ts';
import { bestSharing, type Labelled, loadsOf, movedBetween, sharingOf } from '../partition/all-placements.ts';
import { check } from './story.ts';

export interface LabelledVersion {
  readonly nodes: readonly Labelled[];
  /** By partition. */
  readonly rows: readonly (readonly NodeId[])[];
}

export function areLabelled(nodes: readonly Labelled[]): boolean {
  return nodes.some(({ zone, host }) => zone !== undefined || host !== undefined);
}

export function checkSpread(version: number, { nodes, rows }: LabelledVersion): void {
  const best = String(bestSharing(nodes, rows[0]?.length ?? 0));
  for (const [partition, row] of rows.entries()) {
    const pairs = String(sharingOf(row, nodes));
    check(
      pairs === best,
      () =>
        `version ${version} has partition ${partition} on ${row.join(' ')}, pairs on the same host and zone are ${pairs}, but ${best} is possible`,
    );
  }
}

export function checkSpreadMoves(version: number, before: LabelledVersion, after: LabelledVersion): void {
  const ids = after.nodes.map(({ id }) => id);
  const best = String(bestSharing(after.nodes, after.rows[0]?.length ?? 0));
  const mustMove = before.rows.filter(
    (row) => row.some((node) => !ids.includes(node)) || String(sharingOf(row, after.nodes)) !== best,
  ).length;
  const part = Math.ceil(after.rows.flat().length / ids.length);
  const heldMore = [...loadsOf(before.rows, after.nodes).values()].map((load) => Math.max(0, load - part));
  const mayMove =
    Math.max(
      part,
      heldMore.reduce((sum, copies) => sum + copies, 0),
    ) + ids.length;
  const moved = movedBetween(before.rows, after.rows);
  check(
    moved <= mustMove + mayMove,
    () => `version ${version} moves ${moved} copies, where ${mustMove} must and ${mayMove} may for the loads`,
  );
}
