/** The routes that ask for grants: what is refused there is counted, also if it never came to its route. */
import { ALLOW } from './allow-route.ts';
import { ALLOW_BATCH } from './batch-route.ts';
import { FORWARD_AUTH } from './forward-auth-route.ts';
import { RLS_JSON } from './rls-route.ts';

export const GRANT_ROUTES: ReadonlySet<string | undefined> = new Set([
  ALLOW,
  ALLOW_BATCH,
  FORWARD_AUTH,
  RLS_JSON,
]);
