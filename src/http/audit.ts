/**
 * The audit log of the HTTP listener: one log line for each change or reading that an operator asked for, marked
 * `audit: true`, with the caller. It contains no secrets. Users and customers appear as a digest, which can be compared
 * if the id is known.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { callerOf } from './callers.ts';

/** The fields of one line of the audit log. */
export interface AuditedChange {
  /** The kind of change, such as `nodes.change`. */
  readonly action: string;
  /** The object of the change and its result. Must not contain anything that identifies a user. */
  readonly [detail: string]: unknown;
  /** The HTTP status of the answer. */
  readonly status: number;
}

const DIGEST_CHARACTERS = 16;
/** From this status up to 499, the request was refused, and nothing was changed. */
const REFUSED_STATUS_MIN = 400;
/** From this status on, the change may have happened. */
const UNCERTAIN_STATUS_MIN = 500;

/**
 * Writes a line to the audit log. `by` is the id of the caller's token, or `local` for a program on this machine
 * while the cluster is open.
 */
export function audited(
  logger: Logger,
  request: FastifyRequest,
  change: AuditedChange,
  done: 'changed' | 'read' = 'changed',
): void {
  logger.info({ audit: true, by: callerOf(request)?.id ?? 'local', ...change }, messageFor(change, done));
}

function messageFor({ status }: AuditedChange, done: 'changed' | 'read'): string {
  if (status < REFUSED_STATUS_MIN) return done === 'read' ? 'read by an operator' : 'changed by an operator';
  const result = status < UNCERTAIN_STATUS_MIN ? 'refused' : 'failed, or it is not known whether it was done';
  return `asked for by an operator: ${result}`;
}

/** The first 16 hex digits of the SHA-256 of a user's or customer's id. */
export function digestOfKey(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, DIGEST_CHARACTERS);
}
