/**
 * How group 0 writes down which node holds what: a letter for every replica, row after row, the first of each row for the
 * node that should lead it. The letter is the place of the node in the list of nodes, which is by id. So a placement takes
 * partitions times replicas bytes: 3 KiB of 1,024 partitions with three copies, 28 KiB of the most there can be.
 */
import { assert } from '../../raft/assert.ts';
import type { NodeId } from '../../raft/types.ts';
import { NODES_MAX } from '../config/config.ts';
import type { PlacementTable } from '../partition/placement.ts';

/** As many as there may be nodes (`NODES_MAX`); none that JSON writes otherwise. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const PLACES: ReadonlyMap<number, number> = new Map(
  Array.from(LETTERS, (letter, place) => [letter.charCodeAt(0), place]),
);

/** @param nodes all that the table names, by id */
export function encodePlacement(table: PlacementTable, nodes: readonly NodeId[]): string {
  const letters = new Map(nodes.map((node, place) => [node, LETTERS[place]]));
  let text = '';
  for (const row of table) {
    for (const node of row) {
      const letter = letters.get(node);
      assert(letter !== undefined, 'node {} is among the first {} of the list', node, LETTERS.length);
      text += letter;
    }
  }
  return text;
}

/**
 * @param nodes those it was encoded with
 * @param copies how many nodes hold each partition
 * @throws InvariantError if it is no placement of these nodes
 */
export function decodePlacement(text: string, nodes: readonly NodeId[], copies: number): PlacementTable {
  assert(text.length % copies === 0, 'a placement of {} replicas has {} in each row', text.length, copies);
  const table: NodeId[][] = [];
  for (let start = 0; start < text.length; start += copies) {
    const row: NodeId[] = [];
    for (let i = start; i < start + copies; i += 1) {
      const place = PLACES.get(text.charCodeAt(i)) ?? NODES_MAX;
      const node = nodes[place];
      assert(node !== undefined, 'a placement of {} nodes names {}', nodes.length, text[i]);
      row.push(node);
    }
    table.push(row);
  }
  return table;
}

/** Whether `decodePlacement` would make a table of it. */
export function isPlacement(text: string, nodes: readonly NodeId[], copies: number): boolean {
  if (copies < 1 || text.length % copies !== 0) return false;
  return Array.from(text).every((letter) => (PLACES.get(letter.charCodeAt(0)) ?? NODES_MAX) < nodes.length);
}
