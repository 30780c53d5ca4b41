/**
 * Encodes the placement of partitions as text: one letter per replica, row after row, the first of each row for the
 * node that should lead. The letter is the position of the node in the list of nodes, which ascends by id. The text has
 * partitions x replicas bytes: 3 KiB for 1,024 partitions with three copies, at most 28 KiB.
 */
import { assert } from '../../raft/assert.ts';
import type { NodeId } from '../../raft/types.ts';
import { NODES_MAX } from '../config/config.ts';
import type { PlacementTable } from '../partition/placement.ts';

/** `NODES_MAX` letters; JSON escapes none of them. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const PLACES: ReadonlyMap<number, number> = new Map(
  Array.from(LETTERS, (letter, place) => [letter.charCodeAt(0), place]),
);

/**
 * Encodes a placement.
 *
 * @param nodes all nodes in the table, ascending by id
 */
export function encodePlacement(table: PlacementTable, nodes: readonly NodeId[]): string {
  const letters = new Map(nodes.map((node, place) => [node, LETTERS[place]]));
  let text = '';
  for (const row of table) {
    for (const node of row) {
      const letter = letters.get(node);
      assert(letter !== undefined, 'node {} must be among the first {} of the list', node, LETTERS.length);
      text += letter;
    }
  }
  return text;
}

/**
 * Decodes a placement.
 *
 * @param nodes the nodes that it was encoded with
 * @param copies the number of nodes that hold each partition
 * @throws InvariantError if it is not a placement of these nodes
 */
export function decodePlacement(text: string, nodes: readonly NodeId[], copies: number): PlacementTable {
  assert(
    text.length % copies === 0,
    'a placement of {} replicas must have {} in each row',
    text.length,
    copies,
  );
  const table: NodeId[][] = [];
  for (let start = 0; start < text.length; start += copies) {
    const row: NodeId[] = [];
    for (let i = start; i < start + copies; i += 1) {
      const place = PLACES.get(text.charCodeAt(i)) ?? NODES_MAX;
      const node = nodes[place];
      assert(node !== undefined, 'a placement of {} nodes must not name {}', nodes.length, text[i]);
      row.push(node);
    }
    table.push(row);
  }
  return table;
}

/** Whether `decodePlacement` accepts the text. */
export function isPlacement(text: string, nodes: readonly NodeId[], copies: number): boolean {
  if (copies < 1 || text.length % copies !== 0) return false;
  return Array.from(text).every((letter) => (PLACES.get(letter.charCodeAt(0)) ?? NODES_MAX) < nodes.length);
}
