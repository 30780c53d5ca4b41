/**
 * The frame in which a node reports its load once a second; the leader of group 0 adds on which node leaders
 * gather.
 */
import type { NodeId } from '../../raft/types.ts';
import { Fields, pack, unpack } from './fields.ts';

/** The load of one node. */
export interface LoadReport {
  /** Part of the last second that the main thread was busy, in thousandths. */
  readonly busyPermille: number;
  /** Unused processors of the machine, in thousandths of one. */
  readonly sparePermille: number;
  /** Requests from clients in the last second. */
  readonly askedPerSecond: number;
  /** The node can take over leaders. */
  readonly mayLead: boolean;
  /** Where leaders gather, decided by the leader of group 0 in this term. Other nodes do not send it. */
  readonly decided?: { readonly term: number; readonly target: NodeId };
}

/** Encodes a load report. */
export function encodeLoadReport({
  busyPermille,
  sparePermille,
  askedPerSecond,
  mayLead,
  decided,
}: LoadReport): Buffer {
  return pack([busyPermille, sparePermille, askedPerSecond, mayLead, decided?.term, decided?.target]);
}

/** Decodes a load report. @throws FrameError if it is malformed */
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
