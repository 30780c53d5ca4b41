/**
 * The addresses of a node and their text form, its labels, and the check of a node's entry in a configuration or a
 * change.
 */
import { InvalidFieldError, integerAt, objectAt } from './fields.ts';

/**
 * The labels that say where a node runs. The placement of copies uses them. Each label is text of 1 to
 * `LABEL_CHARACTERS_MAX` characters (see `isLabel`). Absent: not known.
 */
export interface NodeLabels {
  /** A unit that fails together but is not one machine: a data centre, a rack, a cloud zone. */
  readonly zone?: string;
  /** The machine. Nodes with the same host never hold copies of one partition if there are enough other hosts. */
  readonly host?: string;
}

/** The longest label, in characters. */
export const LABEL_CHARACTERS_MAX = 128;
/** The form of a label. */
export const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** The rule for labels, as error messages state it. */
export const LABEL_BOUND =
  `must be 1 to ${LABEL_CHARACTERS_MAX} letters, digits, dots, dashes and underscores, ` +
  'starting with a letter or digit';

/** True if `value` is a valid label. */
export function isLabel(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LABEL_CHARACTERS_MAX && LABEL.test(value);
}

/** Only the labels of an object that may have other fields. */
export function labelsOf({ zone, host }: NodeLabels): NodeLabels {
  return { ...(zone !== undefined && { zone }), ...(host !== undefined && { host }) };
}

/** Checks one label. @throws InvalidFieldError naming the field and its bound */
export function labelAt(value: unknown, field: string): string {
  if (!isLabel(value)) throw new InvalidFieldError(field, LABEL_BOUND);
  return value;
}

/** Checks the labels of a node. @throws InvalidFieldError naming the field, below `path`, and its bound */
function validateLabels(
  { zone, host }: { readonly [Name in keyof NodeLabels]?: unknown },
  path: string,
): NodeLabels {
  return {
    ...(zone !== undefined && { zone: labelAt(zone, `${path}.zone`) }),
    ...(host !== undefined && { host: labelAt(host, `${path}.host`) }),
  };
}

/** The largest node id. */
export const NODE_ID_MAX = 0x7fff_ffff;
const PORT_MAX = 65_535;
/** A host becomes part of a URL in a header, permanently and on every node. So only these characters are allowed. */
const HOST = /^[\w.:%-]{1,253}$/;

/** A host name or address, and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** One node: its id, its addresses and its labels. */
export interface NodeAddress extends NodeLabels {
  readonly id: number;
  readonly http: HostPort;
  readonly peer: HostPort;
  /** The RESP listener (Redis protocol). Absent: the node has none. */
  readonly resp?: HostPort;
  /** The gRPC listener (Envoy's rate limit protocol). Absent: the node has none. */
  readonly grpc?: HostPort;
}

/**
 * `host:port` as URLs write it. An IPv6 address is put in brackets, such as `[::1]:8101`. All texts of addresses are
 * made here.
 */
export function addressText({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * Parses `host:port`. The brackets of an IPv6 address are optional. Undefined if the text is no address, or its port
 * is not 1 to 65,535.
 */
export function readAddress(text: string): HostPort | undefined {
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const port = Number(digits);
  return bare === '' || port < 1 || port > PORT_MAX ? undefined : { host: bare, port };
}

/**
 * Removes the port from an address, because gateways write `203.0.113.9:4711` and `[2001:db8::1]:4711`. Other text is
 * returned unchanged.
 */
export function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  if (bracketed !== undefined) return bracketed;
  const [, withPort] = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text) ?? [];
  return withPort ?? text;
}

/** The addresses of a node by name. Absent ones are left out. */
export function addressesOf({ http, peer, resp, grpc }: NodeAddress): Readonly<Record<string, HostPort>> {
  return { http, peer, ...(resp !== undefined && { resp }), ...(grpc !== undefined && { grpc }) };
}

/**
 * Checks the id, the addresses and the labels of one node. Port 0 is allowed: the system then chooses the port to
 * listen on.
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
