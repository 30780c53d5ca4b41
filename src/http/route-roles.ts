/**
 * The table of which roles may use which route. The role `admin` may use all routes; a route that is missing here is
 * only for it.
 */
import { type Role, ROLES } from '../api/token.ts';

type Roles = 'anybody' | readonly Exclude<Role, 'admin'>[];

const ADMIN: Roles = [];
const DECIDE: Roles = ['decide'];
const READ: Roles = ['read'];

/** The roles by method and path, in Fastify's notation. */
export const ROUTE_ROLES: Readonly<Record<string, Roles>> = {
  'GET /': 'anybody',
  'GET /dashboard/:file': 'anybody',
  'GET /healthz': 'anybody',
  'GET /readyz': 'anybody',
  'POST /v1/allow': DECIDE,
  'POST /v1/allow/batch': DECIDE,
  'POST /json': DECIDE,
  'GET /v1/forward-auth': DECIDE,
  'POST /v1/refunds': DECIDE,
  'POST /v1/users/:userId/refunds': DECIDE,
  'GET /v1/keys/:key': ['decide', 'read'],
  'GET /v1/users/:userId': ['decide', 'read'],
  'PUT /v1/keys/:key/block': ADMIN,
  'DELETE /v1/keys/:key/block': ADMIN,
  'POST /v1/keys/:key/reset': ADMIN,
  'PUT /v1/keys/:key/used': ADMIN,
  'PUT /v1/users/:userId/block': ADMIN,
  'DELETE /v1/users/:userId/block': ADMIN,
  'POST /v1/users/:userId/reset': ADMIN,
  'PUT /v1/users/:userId/used': ADMIN,
  'GET /v1/customers/:customerId': READ,
  'PUT /v1/customers/:customerId': ADMIN,
  'DELETE /v1/customers/:customerId': ADMIN,
  'GET /v1/rules': READ,
  'GET /v1/rules/*': READ,
  'PUT /v1/rules': ADMIN,
  'PUT /v1/rules/*': ADMIN,
  'DELETE /v1/rules/*': ADMIN,
  'GET /v1/usage': READ,
  'GET /v1/cluster': READ,
  'GET /v1/events': READ,
  'GET /v1/leaders': ['decide', 'read'],
  'POST /v1/cluster/nodes': ADMIN,
  'PUT /v1/cluster/nodes/:nodeId/drain': ADMIN,
  'DELETE /v1/cluster/nodes/:nodeId/drain': ADMIN,
  'PUT /v1/cluster/nodes/:nodeId/labels': ADMIN,
  'PUT /v1/cluster/version': ADMIN,
  'GET /v1/tokens': ADMIN,
  'POST /v1/tokens': ADMIN,
  'DELETE /v1/tokens/:tokenId': ADMIN,
  'GET /v1/backup/:group': ADMIN,
  'POST /v1/debug/heap-snapshot': ADMIN,
  'POST /v1/debug/cpu-profile': ADMIN,
  'GET /metrics': READ,
  'GET /openapi.json': 'anybody',
  'GET /docs': 'anybody',
  'GET /docs/api': 'anybody',
  'GET /docs/*': 'anybody',
};

/** The roles that may use a route. @param route undefined if there is no such route: then every role gets the 404 */
export function rolesOf(method: string, route: string | undefined): 'anybody' | readonly Role[] {
  if (route === undefined) return ROLES;
  const roles = ROUTE_ROLES[`${method === 'HEAD' ? 'GET' : method} ${route}`] ?? ADMIN;
  return roles === 'anybody' ? roles : [...roles, 'admin'];
}
