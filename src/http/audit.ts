/**
 * What was changed through the HTTP door, and by whom: one line of the log for each, told from others by `audit: true`. It holds
 * no secret, and of a user or customer a digest that one who knows the id can compare.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { callerOf } from './callers.ts';

/** What `audited` is told of a change. */
export interface AuditedChange {
  /** As `nodes.change`. */
  readonly action: string;
  /** What it was done to, and what became of it; nothing that a user is known by. */
  readonly [detail: string]: unknown;
  /** Of the answer. */
  readonly status: number;
}

const DIGEST_CHARACTERS = 16;

/** `by`: the id of the token that was shown, or `local` for a program on this machine while the cluster is open. */
export function audited(
  logger: Logger,
  request: FastifyRequest,
  change: AuditedChange,
  said = 'changed by an operator',
): void {
  logger.info({ audit: true, by: callerOf(request)?.id ?? 'local', ...change }, said);
}

/** Of the id of a user or customer. */
export function digestOfKey(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, DIGEST_CHARACTERS);
}
