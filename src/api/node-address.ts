/** Where a node of a cluster is reached and stands, and the check of that wherever it is given. */
import { integerAt, InvalidFieldError, objectAt } from './fields.ts';
import { type NodeLabels, validateLabels } from './node-labels.ts';

export const NODE_ID_MAX = 0x7fff_ffff;
const PORT_MAX = 65_535;
/** It becomes part of a URL in a header, on every node and for good. */
const HOST = /^[\w.:%-]{1,253}$/;

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export interface NodeAddress extends NodeLabels {
  readonly id: number;
  readonly http: HostPort;
  readonly peer: HostPort;
  /** Where it speaks the Redis protocol; absent: nowhere. */
  readonly resp?: HostPort;
  /** Where it speaks Envoy's rate limit protocol over gRPC; absent: nowhere. */
  readonly grpc?: HostPort;
}

/** `host:port` as URLs write it: an address of IPv6 stands in brackets, `[::1]:8101`. Every text of an address is made here. */
export function addressText({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Reads `host:port`, where an address of IPv6 may lack its brackets. Undefined: it is none, or its port is not within 1 to 65,535. */
export function readAddress(text: string): HostPort | undefined {
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const port = Number(digits);
  return bare === '' || port < 1 || port > PORT_MAX ? undefined : { host: bare, port };
}

/** Strips the port from an address: gateways write `203.0.113.9:4711` and `[2001:db8::1]:4711`. Other text stays as it is. */
export function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  if (bracketed !== undefined) return bracketed;
  const [, withPort] = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text) ?? [];
  return withPort ?? text;
}

/** Of one node, by their names; those that it has not are left out. */
export function addressesOf({ http, peer, resp, grpc }: NodeAddress): Readonly<Record<string, HostPort>> {
  return { http, peer, ...(resp !== undefined && { resp }), ...(grpc !== undefined && { grpc }) };
}

/**
 * Checks the id, the addresses and the labels of one node. Port 0 lets the system choose, where a node is told to listen.
 *
 * @throws InvalidFieldError naming the field, below `path`
 */
export function validateNode(value: unknown, path: string): NodeAddress {
  const node = objectAt(value, path, ['id', 'http', 'peer', 'resp', 'grpc', 'zone', 'host']);
  return {
    id: integerAt(node['id'], `${path}.id`, 1, NODE_ID_MAX),
    http: hostPort(node['http'], `${path}.http`),
    peer: hostPort(node['peer'], `${path}.peer`),
    ...(node['resp'] !== undefined && { resp: hostPort(node['resp'], `${path}.resp`) }),
    ...(node['grpc'] !== undefined && { grpc: hostPort(node['grpc'], `${path}.grpc`) }),
    ...validateLabels(node, path),
  };
}

function hostPort(value: unknown, path: string): HostPort {
  const address = objectAt(value, path, ['host', 'port']);
  const { host, port } = address as { host?: unknown; port?: unknown };
  if (typeof host !== 'string' || !HOST.test(host)) {
    throw new InvalidFieldError(`${path}.host`, 'must be a host name or address');
  }
  return { host, port: integerAt(port, `${path}.port`, 0, PORT_MAX) };
}
