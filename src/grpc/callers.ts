/**
 * Authenticates the callers of gRPC methods, and refuses those that may not call a method, before the request is
 * read.
 */
import { status, type StatusObject } from '@grpc/grpc-js';
import type { AccessApi, Role } from '../api/token.ts';
import { ROLES } from '../api/token.ts';
import { HEALTH_CHECK, HEALTH_WATCH } from './health.ts';
import { REFLECTION_VERSIONS, reflectionPath } from './reflection.ts';
import { SHOULD_RATE_LIMIT } from './should-rate-limit.ts';

const BEARER = /^Bearer +(\S+) *$/i;

/** The status of a refused call. */
export type Refusal = Pick<StatusObject, 'code' | 'details'>;

type Roles = 'anybody' | readonly Role[];

const METHOD_ROLES: ReadonlyMap<string, Roles> = new Map<string, Roles>([
  [SHOULD_RATE_LIMIT, ['decide', 'admin']],
  [HEALTH_CHECK, 'anybody'],
  [HEALTH_WATCH, 'anybody'],
  // Every valid token may list the services.
  ...REFLECTION_VERSIONS.map((version) => [reflectionPath(version), ROLES] as const),
]);

/** The caller of a method, or the reason of a refusal. `isWrongToken`: a token was sent, and it is not valid. */
export type Caller =
  | { readonly tokenId: string | undefined; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly isWrongToken: boolean };

/** Checks the caller of a method. @param authorization the header of the call */
export function callerOf(access: AccessApi, path: string, authorization: string | undefined): Caller {
  const roles = METHOD_ROLES.get(path);
  if (roles === undefined) return refused(status.UNIMPLEMENTED, 'no such method is served here');
  const mode = access.mode();
  if (mode === 'open' || roles === 'anybody') return { tokenId: undefined };
  if (mode === 'unknown')
    return refused(status.UNAVAILABLE, 'this node does not know yet which tokens are valid; ask again');
  const [, token] = BEARER.exec(authorization ?? '') ?? [];
  const caller = token === undefined ? undefined : access.callerOf(token);
  if (caller === undefined)
    return refused(
      status.UNAUTHENTICATED,
      'send a valid token: authorization: Bearer qt_...',
      // A call without a token is not counted as a failure: its client may not know that one is needed.
      token !== undefined,
    );
  if (roles.includes(caller.role)) return { tokenId: caller.id };
  const needed = roles.join(' or ');
  return refused(
    status.PERMISSION_DENIED,
    `this needs a token of role ${needed}, and this one has ${caller.role}`,
  );
}

function refused(code: status, details: string, isWrongToken = false): Caller {
  return { refusal: { code, details }, isWrongToken };
}
