/** Converts the log of the nemeses into bands of time, and into the log lines that nodes may print because of them. */
import type { NemesisBand } from '../nemesis-log.ts';
import type { NemesisLog } from './nemesis.ts';

/** A band reaches from each start to its end. Nemeses of one name do not overlap. */
export function bandsOf(log: NemesisLog): NemesisBand[] {
  const bands: NemesisBand[] = [];
  const open = new Map<string, { nodes: readonly number[]; startNanos: number }>();
  for (const { event, name, nodes = [], atNanos } of log.events) {
    const began = open.get(name);
    if (event === 'start') open.set(name, { nodes, startNanos: atNanos });
    else if ((event === 'end' || event === 'failed') && began !== undefined) {
      open.delete(name);
      bands.push({ kind: name, ...began, endNanos: event === 'end' ? atNanos : null });
    }
  }
  for (const [kind, began] of open) bands.push({ kind, ...began, endNanos: null });
  return bands.sort((a, b) => a.startNanos - b.startNanos);
}

/**
 * Matches the log line that a peer has another database than expected. Only nodes that lost their database and got a
 * new one may cause it.
 */
export function complaintsOfStrangers(bands: readonly NemesisBand[]): RegExp[] {
  const madeAnew = bands.filter(({ kind }) => kind === 'made-anew').flatMap(({ nodes }) => nodes);
  return madeAnew.map((id) => new RegExp(`another database is recorded under node id ${id}\\b`));
}
