/** Tests which peers a node connects to, and at which addresses. */
import { FIRST_RULES } from '../meta/first-rules.ts';
import { describe, expect, it } from 'vitest';
import { localConfig } from '../../src/config/cluster-directory.ts';
import type { MetaState } from '../../src/meta/cluster-state.ts';
import { currentPeers, introductionsOf } from '../../src/node/peer-addresses.ts';

const config = localConfig({ nodes: 3, partitions: 1, limit: 1, windowMillis: 1_000, basePort: 1 });
const at = (port: number): { readonly host: string; readonly port: number } => ({ host: 'there', port });

function state(ids: readonly number[], more: Partial<MetaState> = {}): MetaState {
  const nodes = ids.map((id) => ({ id, http: at(100 + id), peer: at(200 + id) }));
  return {
    version: 2,
    settledVersion: 2,
    nodes,
    settledNodes: ids,
    leaving: [],
    retired: [],
    placement: '',
    settledPlacement: '',
    rules: FIRST_RULES,
    clusterVersion: 1,
    ...more,
  };
}

describe('a node', () => {
  it('is introduced with its replicated fields, and nothing else of its file', () => {
    const founders = config.founders.map(({ id, incarnation }) => {
      const { http, peer } = config.nodes.find((node) => node.id === id) ?? {};
      return { id, incarnation, http, peer };
    });
    expect(introductionsOf(config)).toEqual(founders);
    const [first] = config.founders;
    expect(introductionsOf({ ...config, nodes: [] })[0]).toStrictEqual(first);
  });

  it('finds the others at their addresses in the list and in its file', () => {
    const peers = currentPeers(state([1, 4]), [], config);
    expect(peers.get(1)).toEqual([config.nodes[0]?.peer, at(201)]);
    expect(peers.get(4)).toEqual([at(204)]);
  });

  it('stays connected to nodes of its file that an old list does not contain, since no others may be left', () => {
    // A new node starts from a snapshot of group 0 that is older than the node itself.
    const peers = currentPeers(state([7, 8, 9]), [7, 8, 9], config);
    expect([...peers.keys()].toSorted((a, b) => a - b)).toEqual([1, 2, 3, 7, 8, 9]);
    expect(peers.get(2)).toEqual([config.nodes[1]?.peer]);
  });

  it('is not connected to removed nodes of its file, unless group 0 must still inform them', () => {
    const peers = currentPeers(state([1, 4], { retired: [2, 3] }), [3], config);
    expect([...peers.keys()].toSorted((a, b) => a - b)).toEqual([1, 3, 4]);
    expect(peers.get(3)).toEqual([]);
  });
});
