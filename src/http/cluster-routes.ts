/**
 * The routes that change the nodes of the running cluster: `POST /v1/cluster/nodes`, `PUT` and `DELETE
 * /v1/cluster/nodes/{id}/drain`, `PUT /v1/cluster/nodes/{id}/labels`, `PUT /v1/cluster/version`. While the cluster is
 * open, only programs on the node's own machine may use them, not a browser or proxy. They parse and format; group 0
 * decides.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  CHANGE_FAILURES,
  type ClusterChange,
  validateLabelChange,
  validateNodeChange,
  validateUpgrade,
} from '../api/cluster-change.ts';
import { NODE_ID_MAX } from '../api/node-address.ts';
import { type AskedChange, changeCluster } from './change-answer.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

/** The paths of the routes, in Fastify's notation. */
export const DRAIN = '/v1/cluster/nodes/:nodeId/drain';
export const LABELS = '/v1/cluster/nodes/:nodeId/labels';

const FORBIDDEN = forbidden(
  'while the cluster is open, only programs on the machine of this node may change its nodes, not a browser or proxy',
);

/** The id of the node in the path. @throws InvalidBodyError if it is none */
function nodeOf({ params }: FastifyRequest): number {
  const { nodeId = '' } = params as { readonly nodeId?: string };
  const node = Number(nodeId);
  if (/^\d+$/.test(nodeId) && node >= 1 && node <= NODE_ID_MAX) return node;
  throw new InvalidBodyError('id', `id must be the id of a node, an integer from 1 to ${NODE_ID_MAX}`);
}

/** Parses `{"add"?: {"id", "http": {"host", "port"}, "peer": {"host", "port"}, "zone"?, "host"?}, "remove"?: id}`. */
function nodesAsked({ body }: FastifyRequest): AskedChange {
  const fields = fieldsOf(body, ['add', 'remove'], 'add, remove or both');
  const change = validateNodeChange(fields);
  if (change.add === undefined && change.remove === undefined)
    throw new InvalidBodyError('body', CHANGE_FAILURES.emptyChange.text);
  return asked({ type: 'nodes', change }, 'nodes.change', { change });
}

function drainAsked(request: FastifyRequest): AskedChange {
  const node = nodeOf(request);
  const change = { node, isDraining: request.method === 'PUT' };
  const body = { node, draining: change.isDraining };
  return { ...asked({ type: 'drain', change }, 'nodes.drain', change), made: () => ({ body }) };
}

/** Parses `{"zone"?: text or null, "host"?: text or null}`. */
function labelsAsked(request: FastifyRequest): AskedChange {
  const node = nodeOf(request);
  const labels = fieldsOf(request.body, ['zone', 'host'], 'zone, host or both');
  const change = validateLabelChange({ ...labels, node });
  return {
    ...asked({ type: 'label', change }, 'nodes.label', change),
    made: ({ version }) => ({ body: { node, version } }),
  };
}

/** Parses `{"version": n}`. */
function versionAsked({ body }: FastifyRequest): AskedChange {
  const change = validateUpgrade(fieldsOf(body, ['version'], 'version'));
  return asked({ type: 'upgrade', change }, 'cluster.upgrade', change);
}

function asked(change: ClusterChange, action: string, details: object): AskedChange {
  return { change, action, details: { ...details }, made: () => ({}) };
}

/** Adds the routes. */
export function addClusterRoutes(app: FastifyInstance, init: HttpListenerInit): void {
  const changing =
    (parse: (request: FastifyRequest) => AskedChange) =>
    (request: FastifyRequest, reply: FastifyReply): FastifyReply =>
      changeCluster(init, { request, reply, forbidding: FORBIDDEN }, () => parse(request));
  app.post('/v1/cluster/nodes', changing(nodesAsked));
  app.put(DRAIN, changing(drainAsked));
  app.delete(DRAIN, changing(drainAsked));
  app.put(LABELS, changing(labelsAsked));
  app.put('/v1/cluster/version', changing(versionAsked));
}
