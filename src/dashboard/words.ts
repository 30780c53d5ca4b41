/** Numbers, spans of time and faults in words. Pure. */
import type { Fault, LiveCluster } from '../api/monitoring.ts';

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(count)} ${count === 1 ? one : many}`;
}

export function wholeNumber(value: number): string {
  return Math.round(value).toLocaleString('en');
}

/** With a digit behind the point while it is small. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value > 0 && value < 10 ? value.toFixed(1) : wholeNumber(value);
}

export function millis(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return `${value < 10 ? value.toFixed(1) : wholeNumber(value)} ms`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** In the largest two units, as `1 min 30 s`. */
export function span(spanMillis: number): string {
  if (spanMillis < 1_000) return `${Math.ceil(spanMillis)} ms`;
  const parts: string[] = [];
  let rest = Math.ceil(spanMillis / 1_000) * 1_000;
  for (const [unit, length] of UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.slice(0, 2).join(' ');
}

export function bytes(value: number): string {
  if (value < 1_024) return `${value} B`;
  if (value < 1_048_576) return `${(value / 1_024).toFixed(1)} KiB`;
  return value < 10_485_760
    ? `${(value / 1_048_576).toFixed(1)} MiB`
    : `${wholeNumber(value / 1_048_576)} MiB`;
}

/** Of the day, by the clock of the one who looks. */
export function clockTime(atMillis: number): string {
  return new Date(atMillis).toLocaleTimeString('en-GB');
}

/** How bad a fault is: told by a word beside its colour. */
export type Gravity = 'bad' | 'warning' | 'good' | 'usual';

export function gravityOf({ kind }: Fault): Gravity {
  switch (kind) {
    case 'nodeSilent':
    case 'leaderLost':
      return 'bad';
    case 'clockUnfit':
    case 'drainBegun':
      return 'warning';
    case 'nodeHeard':
    case 'leaderElected':
    case 'clockFit':
    case 'drainEnded':
      return 'good';
    case 'leaderMoved':
      return 'usual';
  }
}

export function faultInWords({ kind, node, count = 0, partitions = [] }: Fault): string {
  const more = count > partitions.length ? ` and ${count - partitions.length} more` : '';
  const which = `${counted(count, 'partition')} (${partitions.join(', ')}${more})`;
  switch (kind) {
    case 'nodeSilent':
      return `node ${node} says nothing any more`;
    case 'nodeHeard':
      return `node ${node} is heard again`;
    case 'leaderLost':
      return `${which} lost the leader, node ${node}`;
    case 'leaderElected':
      return `node ${node} leads ${which} now`;
    case 'leaderMoved':
      return `node ${node} took over ${which}`;
    case 'clockUnfit':
      return `the clock of node ${node} runs too fast or too slow: it leads nothing`;
    case 'clockFit':
      return `the clock of node ${node} is fit again`;
    case 'drainBegun':
      return `node ${node} is drained by an operator`;
    case 'drainEnded':
      return `node ${node} is drained no more`;
  }
}

/** How the cluster is, in one sentence, worst first. */
export function clusterInWords({ nodes, partitions }: LiveCluster): { gravity: Gravity; words: string } {
  const down = nodes.filter(({ up }) => !up).map(({ id }) => id);
  const leaderless = partitions.filter(({ leader }) => leader === 0).length;
  const moving = partitions.filter(({ placed }) => !placed).length;
  const restored = partitions.filter(({ restoredMillis = 0 }) => restoredMillis > 0).length;
  const restoredMillis = Math.max(0, ...partitions.map((partition) => partition.restoredMillis ?? 0));
  if (down.length === 0 && leaderless === 0 && moving === 0 && restored === 0)
    return {
      gravity: 'good',
      words: `All ${counted(nodes.length, 'node')} are up, and every partition has a leader.`,
    };
  const parts: string[] = [];
  if (leaderless > 0) parts.push(`${counted(leaderless, 'partition')} without a leader deny everything`);
  if (restored > 0)
    parts.push(
      `${counted(restored, 'restored partition denies', 'restored partitions deny')} everybody for ${Math.ceil(restoredMillis / 1_000)} s more at most`,
    );
  if (down.length > 0) parts.push(`node ${down.join(', ')} says nothing`);
  if (moving > 0)
    parts.push(`${counted(moving, 'partition is', 'partitions are')} on the way to other nodes`);
  if (leaderless === 0) parts.push('every partition has a leader');
  const gravity = leaderless > 0 || down.length > 0 || restored > 0 ? 'bad' : 'warning';
  const sentence = parts.join('; ');
  return { gravity, words: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.` };
}
