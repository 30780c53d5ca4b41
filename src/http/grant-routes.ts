/**
 * The set of routes that ask for grants. Refusals on these routes are counted, even if the request never reached its
 * route.
 */
import { ALLOW } from './allow-route.ts';
import { ALLOW_BATCH } from './batch-route.ts';
import { FORWARD_AUTH } from './forward-auth-route.ts';
import { RLS_JSON } from './rls-route.ts';

/** The paths of these routes. */
export const GRANT_ROUTES: ReadonlySet<string | undefined> = new Set([
  ALLOW,
  ALLOW_BATCH,
  FORWARD_AUTH,
  RLS_JSON,
]);
