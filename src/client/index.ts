/**
 * `@quorate/client`: asks a Quorate cluster for grants.
 *
 * @example
 * import { QuorateClient } from '@quorate/client';
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101'] });
 * const { allowed } = await client.allow({ userId: 'ada' });
 */
export { QuorateClient, type WaitOptions } from './client.ts';
export {
  AbortedError,
  BlockedError,
  UnmatchedError,
  ClosedError,
  CostAboveLimitError,
  IndefiniteError,
  InvalidOptionError,
  InvalidRequestError,
  OverloadedError,
  PermitTimeoutError,
  QuorateError,
  RefusedError,
  RequestIdConflictError,
  UnavailableError,
} from './errors.ts';
export type { ClientEvent } from './events.ts';
export type { ClientOptions, FailMode, LocalFraction } from './options.ts';
export type { PermitAnswer, PermitLimit, PermitReceipt, PermitRequest, ShadowDenial } from './permit.ts';
export type { AbortSignalLike } from './aborts.ts';
export type { PermitGranted } from './permit-lines.ts';
export type { ClientTls } from './tls-options.ts';
