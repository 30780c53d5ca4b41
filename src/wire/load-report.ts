/** The frame by which a node says once a second how busy it is, and, if it leads group 0, where leaders gather. */
import type { NodeId } from '../../raft/types.ts';
import { Fields, pack, unpack } from './fields.ts';

export interface LoadReport {
  /** How much of the last second its main thread worked, in thousandths. */
  readonly busyPermille: number;
  /** Processors of its machine that nobody used, in thousandths of one. */
  readonly sparePermille: number;
  /** Requests that clients asked of it in the last second. */
  readonly askedPerSecond: number;
  /** It would take leaders over. */
  readonly mayLead: boolean;
  /** What it has decided, as the leader of group 0 in a term; absent from all others. */
  readonly decided?: { readonly term: number; readonly target: NodeId };
}

export function encodeLoadReport({
  busyPermille,
  sparePermille,
  askedPerSecond,
  mayLead,
  decided,
}: LoadReport): Buffer {
  return pack([busyPermille, sparePermille, askedPerSecond, mayLead, decided?.term, decided?.target]);
}

/** @throws FrameError if it is malformed */
export function decodeLoadReport(payload: Uint8Array): LoadReport {
  const fields = new Fields(unpack(payload));
  const report = {
    busyPermille: fields.integer('busyPermille'),
    sparePermille: fields.integer('sparePermille'),
    askedPerSecond: fields.integer('askedPerSecond'),
    mayLead: fields.boolean('mayLead'),
  };
  const term = fields.optionalInteger('term');
  const target = fields.optionalInteger('target');
  if (term === undefined || target === undefined) return report;
  return { ...report, decided: { term, target } };
}
