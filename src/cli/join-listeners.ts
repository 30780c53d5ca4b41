/** Which listeners a node that joins opens: those that the other nodes have, unless it was said otherwise. Pure. */
import { addressText, addressesOf, type HostPort, type NodeAddress } from '../api/node-address.ts';
import { ConfigError } from '../config/config.ts';

const OPTIONAL = ['resp', 'grpc'] as const;
const PORT_MAX = 65_535;
/** As people know them. */
const NAMES: Readonly<Record<string, string>> = { http: 'HTTP', peer: 'peers', resp: 'RESP', grpc: 'gRPC' };

type Optional = (typeof OPTIONAL)[number];
const NONE: Readonly<Record<Optional, string>> = { resp: '--no-resp', grpc: '--no-grpc' };

/** Absent: as the others. False: not at all. */
export type JoiningNode = Omit<NodeAddress, Optional> & { readonly [Name in Optional]?: HostPort | false };

/**
 * The node with the listeners that the others have, at its own host.
 *
 * @param known the nodes of `cluster.json`; if it lists this one already, what it says of it counts
 * @throws ConfigError if the ports of the others have nothing in common
 */
export function withListeners(asked: JoiningNode, known: readonly NodeAddress[]): NodeAddress {
  const { resp: _resp, grpc: _grpc, ...node } = asked;
  const listed = known.find(({ id }) => id === asked.id);
  const found = OPTIONAL.flatMap((name): [Optional, HostPort][] => {
    const said = asked[name];
    if (said === false) return [];
    const address = said ?? (listed === undefined ? listenerLike(name, asked.http, known) : listed[name]);
    return address === undefined ? [] : [[name, address]];
  });
  return { ...node, ...Object.fromEntries(found) };
}

/** For people: `HTTP 10.0.0.4:8104, peers 10.0.0.4:9104`. */
export function listenersText(node: NodeAddress): string {
  return Object.entries(addressesOf(node))
    .map(([name, address]) => `${NAMES[name] ?? name} ${addressText(address)}`)
    .join(', ');
}

/** At the port that all others have, or as far from HTTP as theirs are. Undefined: no other has such a listener. */
function listenerLike(name: Optional, http: HostPort, known: readonly NodeAddress[]): HostPort | undefined {
  const others = known.flatMap((node) => {
    const port = node[name]?.port;
    return port === undefined ? [] : [{ port, distance: port - node.http.port }];
  });
  if (others.length === 0) return undefined;
  const [port, ...otherPorts] = new Set(others.map((other) => other.port));
  const [distance = 0, ...otherDistances] = new Set(others.map((other) => other.distance));
  // One node alone has all in common: then the distance counts, as nodes of one machine need ports of their own.
  if (port !== undefined && otherPorts.length === 0 && others.length > 1) return { host: http.host, port };
  const far = http.port + distance;
  if (otherDistances.length === 0 && far >= 1 && far <= PORT_MAX) return { host: http.host, port: far };
  throw new ConfigError(
    `--${name}`,
    `must be given, as host:port, or ${NONE[name]} for none: the ports of the other nodes do not say which one is meant`,
  );
}
