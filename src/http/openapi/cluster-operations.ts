/** What nodes tell of themselves and their cluster, and what operators change of it, described. */
import { NODE_ID_MAX } from '../../api/node-address.ts';
import { RULE_ID_BYTES_MAX } from '../../api/request.ts';
import { USAGE_MINUTES_MAX, USAGE_TOP_MAX } from '../../api/usage.ts';
import { VERSIONS } from '../../api/versions.ts';
import type { Operation, Parameter } from './operation.ts';
import { integer, oneOf, text } from './schema.ts';

const NODE_ID: Parameter = { name: 'nodeId', in: 'path', schema: integer(1, NODE_ID_MAX) };
const CHANGE_FAILURES = { 400: { is: 'Fault' }, 409: { is: 'Failure' }, 503: { is: 'Failure' } } as const;
const DRAINED = {
  200: { is: 'Draining', example: { node: 2, draining: true } },
  ...CHANGE_FAILURES,
  404: { is: 'Failure' },
} as const;
const TOKEN = { id: 'ab12cd34', role: 'decide', name: 'gateway', createdMillis: 1_795_231_945_653 };
const nodes = { group: 'Cluster' };
const watching = { group: 'Watching' };
const tokens = { group: 'Tokens' };

const CHANGING: Readonly<Record<string, Operation>> = {
  'POST /v1/cluster/nodes': {
    ...nodes,
    summary: 'Add, remove or replace a node',
    body: {
      is: 'NodesRequest',
      example: {
        add: { id: 4, http: { host: '10.0.0.4', port: 8104 }, peer: { host: '10.0.0.4', port: 9104 } },
        remove: 2,
      },
    },
    answers: { 200: { is: 'Version', example: { version: 5 } }, ...CHANGE_FAILURES },
  },
  'PUT /v1/cluster/nodes/:nodeId/drain': {
    ...nodes,
    summary: 'A node hands over what it leads, and takes no requests',
    parameters: [NODE_ID],
    answers: DRAINED,
  },
  'DELETE /v1/cluster/nodes/:nodeId/drain': {
    ...nodes,
    summary: 'It takes requests again',
    parameters: [NODE_ID],
    answers: { ...DRAINED, 200: { is: 'Draining', example: { node: 2, draining: false } } },
  },
  'PUT /v1/cluster/nodes/:nodeId/labels': {
    ...nodes,
    summary: 'Say otherwise where a node stands: copies of a partition are spread by it',
    parameters: [NODE_ID],
    body: { is: 'LabelsRequest', example: { zone: 'a', host: null } },
    answers: {
      200: { is: 'Labelled', example: { node: 2, version: 6 } },
      ...CHANGE_FAILURES,
      404: { is: 'Failure' },
    },
  },
  'PUT /v1/cluster/version': {
    ...nodes,
    summary: 'Raise the version of the cluster, for good',
    body: { is: 'VersionRequest', example: { version: VERSIONS.max } },
    answers: { 200: { is: 'Version', example: { version: VERSIONS.max } }, ...CHANGE_FAILURES },
  },
  'GET /v1/tokens': {
    ...tokens,
    summary: 'All tokens, without their secrets',
    answers: { 200: { is: 'Tokens', example: { tokens: [TOKEN] } } },
  },
  'POST /v1/tokens': {
    ...tokens,
    summary: 'Make a token: it is told here and never again',
    body: { is: 'TokenRequest', example: { role: 'decide', name: 'gateway' } },
    answers: {
      201: { is: 'NewToken', example: { ...TOKEN, token: `qt_ab12cd34_${'A'.repeat(43)}`, pending: [] } },
      ...CHANGE_FAILURES,
    },
  },
  'DELETE /v1/tokens/:tokenId': {
    ...tokens,
    summary: 'Revoke a token',
    parameters: [
      { name: 'tokenId', in: 'path', schema: { type: 'string' } },
      {
        name: 'open',
        in: 'query',
        schema: oneOf(['true']),
        description: 'also the last one of role admin: then the cluster is open',
      },
    ],
    answers: {
      200: { is: 'TokenRevoked', example: { id: 'ab12cd34', pending: [] } },
      202: { is: 'TokenRevoked' },
      ...CHANGE_FAILURES,
      404: { is: 'Failure' },
    },
  },
};

const TELLING: Readonly<Record<string, Operation>> = {
  'GET /v1/cluster': {
    ...watching,
    summary: 'Nodes, leaders, log positions and rules',
    answers: { 200: { is: 'Cluster' }, 503: { is: 'Readiness' } },
  },
  'GET /v1/leaders': {
    ...watching,
    summary: 'Who leads which partition, for clients that ask leaders directly',
    answers: {
      200: {
        is: 'Leaders',
        example: { nodes: [{ id: 1, http: '127.0.0.1:8101' }], partitions: [{ leader: 1, term: 2 }] },
      },
      503: { is: 'Readiness' },
    },
  },
  'GET /v1/events': {
    ...watching,
    summary: 'How the cluster is, once a second, as server-sent events',
    description: '`cluster`, `figures`, and `faults` when there are new ones.',
    answers: { 200: { is: { type: 'text/event-stream' } }, 503: { is: 'Failure' } },
  },
  'GET /v1/usage': {
    ...watching,
    summary: 'What the doors of all nodes answered',
    parameters: [
      { name: 'minutes', in: 'query', schema: integer(1, USAGE_MINUTES_MAX) },
      { name: 'rule', in: 'query', schema: text(RULE_ID_BYTES_MAX) },
      {
        name: 'top',
        in: 'query',
        schema: integer(1, USAGE_TOP_MAX),
        description: 'so many users of each list',
      },
    ],
    answers: { 200: { is: 'Usage' }, 400: { is: 'Fault' }, 503: { is: 'Failure' } },
  },
  'GET /healthz': {
    ...watching,
    summary: 'The process is up',
    answers: { 200: { is: 'Readiness', example: { status: 'ok' } } },
  },
  'GET /readyz': {
    ...watching,
    summary: 'Every partition on this node has a leader',
    answers: {
      200: { is: 'Readiness', example: { status: 'ready' } },
      503: { is: 'Readiness', example: { status: 'starting', loaded: 3, of: 7 } },
    },
  },
  'GET /metrics': {
    ...watching,
    summary: 'Figures for Prometheus',
    answers: { 200: { is: { type: 'text/plain' } } },
  },
  'GET /v1/backup/:group': {
    ...watching,
    summary: 'The state of one group, as a stream of chunks',
    parameters: [
      {
        name: 'group',
        in: 'path',
        schema: integer(0),
        description: '0 is that of the cluster, p + 1 that of partition p',
      },
      { name: 'maxBytesPerSecond', in: 'query', schema: integer(1) },
    ],
    answers: {
      200: { is: { type: 'application/octet-stream' } },
      400: { is: 'Fault' },
      404: { is: 'Failure' },
      409: { is: 'Failure' },
      503: { is: 'Failure' },
    },
  },
  'GET /openapi.json': {
    ...watching,
    summary: 'This document',
    answers: { 200: { is: { type: 'application/json' } } },
  },
};

export const CLUSTER_OPERATIONS = { ...CHANGING, ...TELLING };
