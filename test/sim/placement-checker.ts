/**
 * Checks the placement of partitions. Parses the text of the committed list of nodes itself and does not use the
 * product's ring. For every version:
 *
 * - Each partition has as many distinct nodes as there are copies, all of that version.
 * - Only the moves that a membership change requires are made. A joining node gets its part, rounded up, and no other
 *   node gets anything. Each copy of a leaving node goes to one other node. A replacement gets just that.
 * - No node holds or leads much more than its part. With labels, other laws replace this one and the previous one
 *   (spread-checker.ts).
 * - Every node that knows the version uses it, however it learned of it.
 */
import type { NodeId } from '../../raft/types.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import type { Labelled } from '../partition/all-placements.ts';
import type { SimNode } from './sim-node.ts';
import { areLabelled, checkSpread, checkSpreadMoves } from './spread-checker.ts';
import { check } from './story.ts';

interface Version {
  readonly text: string;
  readonly nodes: readonly NodeId[];
  readonly labelled: readonly Labelled[];
  /** By partition. The first node should lead it. */
  readonly rows: readonly (readonly NodeId[])[];
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** How much a node may hold or lead above its part. */
const ABOVE_PART_MAX = 2;

export class PlacementChecker {
  readonly #partitions: number;
  readonly #replicas: number;
  readonly #versions = new Map<number, Version>();

  constructor({ partitions, replicas }: { readonly partitions: number; readonly replicas: number }) {
    this.#partitions = partitions;
    this.#replicas = replicas;
  }

  /** The committed state. */
  metaChanged(state: MetaState): void {
    const { version, nodes, placement, settledVersion, settledPlacement } = state;
    const ids = nodes.map(({ id }) => id);
    // For nodes with labels version 2 is committed first: it continues from the founding placement.
    if (this.#versions.size === 0 && version === 2) this.#founded(state);
    const known = this.#versions.get(version);
    const text = known?.text ?? placement;
    check(text === placement, () => `version ${version} had placement ${text}, and has ${placement} now`);
    if (known === undefined) {
      const next = { text, nodes: ids, labelled: nodes, rows: this.#rowsOf(placement, ids) };
      this.#checkSound(version, next);
      const before = this.#versions.get(version - 1);
      if (before !== undefined) checkMoves(version, before, next);
      this.#versions.set(version, next);
    }
    const settled = this.#versions.get(settledVersion)?.text;
    check(
      settled === settledPlacement,
      () => `version ${settledVersion} has placement ${settled}, but ${settledPlacement} is remembered`,
    );
  }

  #founded({ settledNodes: nodes, settledPlacement: text }: MetaState): void {
    const labelled = nodes.map((id) => ({ id }));
    const first = { text, nodes, labelled, rows: this.#rowsOf(text, nodes) };
    this.#checkSound(1, first);
    this.#versions.set(1, first);
  }

  /** The nodes that should have partition `partition` under a committed version. */
  replicasOf(version: number, partition: number): readonly NodeId[] {
    return this.#versions.get(version)?.rows[partition] ?? [];
  }

  /** Compares what a running node knows. */
  compare({ id, core }: SimNode): void {
    const version = core?.meta.state?.version;
    if (core === undefined || version === undefined) return;
    const known = this.#versions.get(version);
    check(known !== undefined, () => `node ${id} uses version ${version}, which is not committed`);
    for (let partition = 0; partition < this.#partitions; partition += 1) {
      const goesBy = core.placement.replicasOf(partition).join(' ');
      const wanted = this.replicasOf(version, partition).join(' ');
      check(
        goesBy === wanted,
        () =>
          `node ${id} has partition ${partition} on ${goesBy} in version ${version} instead of on ${wanted}`,
      );
    }
  }

  #rowsOf(text: string, nodes: readonly NodeId[]): NodeId[][] {
    const all = Array.from(text, (letter) => nodes[LETTERS.indexOf(letter)] ?? -1);
    return Array.from({ length: this.#partitions }, (_, i) =>
      all.slice(i * this.#replicas, (i + 1) * this.#replicas),
    );
  }

  #checkSound(version: number, { text, nodes, labelled, rows }: Version): void {
    const copies = this.#partitions * this.#replicas;
    check(text.length === copies, () => `version ${version} places ${text.length} replicas of ${copies}`);
    for (const [partition, row] of rows.entries()) {
      const isSound = new Set(row).size === this.#replicas && row.every((node) => nodes.includes(node));
      check(isSound, () => `version ${version} places partition ${partition} on ${row.join(' ')}`);
    }
    if (areLabelled(labelled)) return checkSpread(version, { nodes: labelled, rows });
    const heldMax = Math.ceil(copies / nodes.length) + ABOVE_PART_MAX;
    const ledMax = Math.ceil(this.#partitions / nodes.length) + ABOVE_PART_MAX;
    for (const node of nodes) {
      const held = rows.filter((row) => row.includes(node)).length;
      const led = rows.filter(([leader]) => leader === node).length;
      check(
        held <= heldMax && led <= ledMax,
        () =>
          `in version ${version} node ${node} holds ${held} of at most ${heldMax}, leads ${led} of ${ledMax}`,
      );
    }
  }
}

function checkMoves(version: number, before: Version, after: Version): void {
  if (areLabelled([...before.labelled, ...after.labelled])) {
    const [was, is] = [before, after].map(({ labelled, rows }) => ({ nodes: labelled, rows }));
    if (was !== undefined && is !== undefined) checkSpreadMoves(version, was, is);
    return;
  }
  const joined = after.nodes.filter((node) => !before.nodes.includes(node));
  const left = before.nodes.filter((node) => !after.nodes.includes(node));
  const came = after.rows.map((row, i) => row.filter((node) => before.rows[i]?.includes(node) !== true));
  const went = before.rows.map((row, i) => row.filter((node) => after.rows[i]?.includes(node) !== true));
  const where = `version ${version}, in which node ${joined.join(' ') || '-'} joins and ${left.join(' ') || '-'} leaves,`;
  if (left.length === 0) {
    const most = Math.ceil(after.rows.flat().length / after.nodes.length);
    const isSpared = came.flat().length <= most && came.flat().every((node) => joined.includes(node));
    check(isSpared, () => `${where} moves ${came.flat().length} replicas, to ${came.flat().join(' ')}`);
    return;
  }
  check(
    went.flat().every((node) => left.includes(node)),
    () => `${where} moves replicas away from ${went.flat().join(' ')}`,
  );
  if (joined.length === 0) return;
  const leaders = after.rows
    .filter(([leader], i) => leader !== before.rows[i]?.[0])
    .map(([leader]) => leader);
  const isReplaced = [...came.flat(), ...leaders].every(
    (node) => node !== undefined && joined.includes(node),
  );
  check(
    isReplaced,
    () => `${where} moves replicas to ${came.flat().join(' ')}, leaders to ${leaders.join(' ')}`,
  );
}
