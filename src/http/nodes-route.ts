/**
 * `POST /v1/cluster/nodes`: adds, removes or replaces a node of the running cluster. Until callers are authenticated
 * it answers the node's own machine only, and there neither a browser nor a proxy. It parses and formats; group 0 decides.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { ConfigError, type NodeAddress, validateNode } from '../config/config.ts';
import type { NodeChangeResult } from '../meta/meta-group.ts';
import type { NodeChange, NodeChangeRefusal } from '../meta/meta-state.ts';
import { InvalidBodyError } from './allow-request.ts';

export interface NodesAnswer {
  readonly status: 200 | 409 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const MESSAGES: Readonly<Record<NodeChangeRefusal, string>> = {
  emptyChange: 'give a node to add, the id of one to remove, or both',
  retiredNode: 'this id belonged to a node that was removed, or is to be; take a new one',
  nodeExists: 'the id or an address belongs to another node of the cluster',
  unknownNode: 'the node to remove does not belong to the cluster',
  tooFewNodes: 'fewer nodes would remain than each partition has copies; add one in the same change',
  tooManyNodes: 'the cluster has as many nodes as it can have',
};

/**
 * Browsers send `Origin` with every POST, also to a name of the attacker's that leads to loopback all at once (DNS
 * rebinding). The other headers say that somebody else asks through a proxy here.
 */
const FOREIGN_HEADERS = ['origin', 'forwarded', 'via', 'x-forwarded-for', 'x-real-ip'] as const;

/** The two ends of a connection. */
export interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** Does a program on this machine ask, for itself? A node that listens on one address only is not found on loopback. */
export function isLocal({ remoteAddress = '', localAddress }: Ends, headers: IncomingHttpHeaders): boolean {
  const isLoopback = remoteAddress === '::1' || /^(::ffff:)?127\./.test(remoteAddress);
  const isOwn = isLoopback || remoteAddress === localAddress;
  return isOwn && FOREIGN_HEADERS.every((name) => headers[name] === undefined);
}

/**
 * `{"add"?: {"id", "http": {"host", "port"}, "peer": {"host", "port"}}, "remove"?: id}`.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
export function parseNodesBody(body: unknown): NodeChange {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new InvalidBodyError('body', 'body must be a JSON object with add, remove or both');
  }
  const { add, remove, ...others } = body as { add?: unknown; remove?: unknown };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    const shown = unknown.slice(0, 64);
    throw new InvalidBodyError(shown, `${shown} is not a field; the fields are add, remove`);
  }
  if (add === undefined && remove === undefined) throw new InvalidBodyError('body', MESSAGES.emptyChange);
  if (remove !== undefined && (typeof remove !== 'number' || !Number.isSafeInteger(remove) || remove < 1)) {
    throw new InvalidBodyError('remove', 'remove must be the id of a node, an integer >= 1');
  }
  try {
    return {
      ...(add !== undefined && { add: parseNode(add) }),
      ...(remove !== undefined && { remove }),
    };
  } catch (error) {
    if (error instanceof ConfigError) throw new InvalidBodyError(error.field, error.message);
    throw error;
  }
}

function parseNode(value: unknown): NodeAddress {
  const node = validateNode(value, 'add');
  for (const name of ['http', 'peer'] as const) {
    // In a configuration 0 lets the system choose; nobody else could know what.
    if (node[name].port === 0)
      throw new ConfigError(`add.${name}.port`, 'must be an integer from 1 to 65535');
  }
  return node;
}

export function formatNodesAnswer(result: NodeChangeResult): NodesAnswer {
  if (result.ok) return { status: 200, headers: {}, body: { version: result.version } };
  switch (result.reason) {
    case 'notLeader':
      return unavailable('no_leader', 'group 0 has no leader just now; ask again');
    case 'overloaded':
      return unavailable('overloaded', 'too many changes are waiting; ask again');
    case 'unknownOutcome':
      return unavailable('unknown_outcome', 'the change may have happened; asking again does it once');
    case 'notMember':
      return refused(result.reason, 'this node does not belong to the cluster; ask another one');
    case 'emptyChange':
    case 'retiredNode':
    case 'nodeExists':
    case 'unknownNode':
    case 'tooFewNodes':
    case 'tooManyNodes':
      return refused(result.reason, MESSAGES[result.reason]);
  }
}

function refused(reason: string, message: string): NodesAnswer {
  return { status: 409, headers: {}, body: { reason, message } };
}

function unavailable(reason: string, message: string): NodesAnswer {
  return { status: 503, headers: { 'retry-after': '1' }, body: { reason, message } };
}
