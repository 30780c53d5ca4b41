/**
 * How group 0 writes down which node holds what: a letter for every replica, row after row, the first of each row for the
 * node that should lead it. The letter is the place of the node in the list of nodes, which is by id. So a placement takes
 * partitions times replicas bytes: 3 KiB of 1,024 partitions with three copies, 28 KiB of the most there can be.
 */
import { assert } from '../../raft/assert.ts';
import type { NodeId } from '../../raft/types.ts';
import type { PlacementTable } from '../partition/placement.ts';

/** As many as there may be nodes (`NODES_MAX`); none that JSON writes otherwise. */
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** @param nodes all that the table names, by id */
export function encodePlacement(table: PlacementTable, nodes: readonly NodeId[]): string {
  const letters = new Map(nodes.map((node, i) => [node, LETTERS[i]]));
  return table
    .flat()
    .map((node) => {
      const letter = letters.get(node);
      assert(letter !== undefined, 'node {} is among the first {} of the list', node, LETTERS.length);
      return letter;
    })
    .join('');
}

/**
 * @param nodes those it was encoded with
 * @param copies how many nodes hold each partition
 * @throws if it is no placement of these nodes
 */
export function decodePlacement(text: string, nodes: readonly NodeId[], copies: number): PlacementTable {
  assert(text.length % copies === 0, 'a placement of {} replicas has {} in each row', text.length, copies);
  const table: NodeId[][] = [];
  for (let start = 0; start < text.length; start += copies) {
    table.push(Array.from(text.slice(start, start + copies), (letter) => nodeOf(letter, nodes)));
  }
  return table;
}

function nodeOf(letter: string, nodes: readonly NodeId[]): NodeId {
  const place = LETTERS.indexOf(letter);
  const node = nodes[place];
  assert(node !== undefined, 'a placement of {} nodes names number {}', nodes.length, place);
  return node;
}
