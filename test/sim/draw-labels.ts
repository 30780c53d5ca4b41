/** Draws the labels of nodes: few zones and few hosts. Operators change them now and then. */
import type { NodeId } from '../../raft/types.ts';
import type { NodeLabels } from '../../src/api/node-address.ts';
import type { Random } from './random.ts';
import type { LabelSettings, Settings } from './settings.ts';

/** One of these names, or none at all. */
export function drawLabels(random: Random, { zones, hosts }: LabelSettings): NodeLabels {
  const [zone, host] = [random.below(zones + 1), random.below(hosts + 1)];
  return { ...(zone > 0 && { zone: `z${zone}` }), ...(host > 0 && { host: `h${host}` }) };
}

export function withLabels(random: Random, drawn: Settings): Settings {
  const labels = { zones: random.pick([2, 3, 4]), hosts: random.pick([2, 4, 8]) };
  const { nodes } = drawn.config;
  // Otherwise they are set while the cluster runs.
  if (!random.chance(0.5)) return { ...drawn, labels };
  const labelled = nodes.map((node) => ({ ...node, ...drawLabels(random, labels) }));
  return { ...drawn, labels, config: { ...drawn.config, nodes: labelled } };
}

/** The next label change of a node: one label or both, or none. */
export function drawLabelChange(
  random: Random,
  node: NodeId,
  settings: LabelSettings,
): { node: NodeId; zone?: string | null; host?: string | null } {
  const { zone = null, host = null } = drawLabels(random, settings);
  const which = random.pick(['zone', 'host', 'both'] as const);
  return { node, ...(which !== 'host' && { zone }), ...(which !== 'zone' && { host }) };
}
