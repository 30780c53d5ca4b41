/** The record of the faults: bands of time on the recorder's clock, as JSON lines. Injects no fault itself. */
import { readFile } from 'node:fs/promises';

export interface NemesisBand {
  /** The kind of fault: `kill`, `pause`, `partition`, ... */
  readonly kind: string;
  /** The affected nodes. Empty: all of them. */
  readonly nodes: readonly number[];
  readonly startNanos: number;
  /** When the fault ended. Null: it never did. */
  readonly endNanos: number | null;
}

/** `{"kind":"kill","nodes":[2],"start_ns":1,"end_ns":2}` */
export function encodeBand({ kind, nodes, startNanos, endNanos }: NemesisBand): string {
  return JSON.stringify({ kind, nodes, start_ns: startNanos, end_ns: endNanos });
}

export function decodeBand(line: string): NemesisBand {
  const { kind, nodes, start_ns: start, end_ns: end } = JSON.parse(line) as Record<string, unknown>;
  if (typeof kind !== 'string' || typeof start !== 'number') throw new Error(`not a nemesis band: ${line}`);
  return {
    kind,
    nodes: Array.isArray(nodes) ? nodes.filter((node) => typeof node === 'number') : [],
    startNanos: start,
    endNanos: typeof end === 'number' ? end : null,
  };
}

/** The bands of a nemesis log, ordered by their start. */
export async function readNemesisLog(path: string): Promise<NemesisBand[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map(decodeBand).sort((a, b) => a.startNanos - b.startNanos);
}

/** Whether a band overlaps [from, to] when its end is extended by `settleNanos`. */
export function overlaps(band: NemesisBand, from: number, to: number, settleNanos = 0): boolean {
  return band.startNanos <= to && (band.endNanos === null || band.endNanos + settleNanos >= from);
}
