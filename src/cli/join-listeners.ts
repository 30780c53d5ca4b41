/** Chooses the listeners of a joining node: by default those that the other nodes have. Pure functions. */
import { addressText, addressesOf, type HostPort, type NodeAddress } from '../api/node-address.ts';
import { ConfigError } from '../config/config.ts';

const OPTIONAL = ['resp', 'grpc'] as const;
const PORT_MAX = 65_535;
/** Names for messages. */
const NAMES: Readonly<Record<string, string>> = {
  http: 'HTTP',
  peer: 'peers',
  resp: 'Redis protocol',
  grpc: 'gRPC',
};

type Optional = (typeof OPTIONAL)[number];
const NONE: Readonly<Record<Optional, string>> = { resp: '--no-resp', grpc: '--no-grpc' };

/** The addresses of a joining node. An absent listener is chosen like those of the others; false means none. */
export type JoiningNode = Omit<NodeAddress, Optional> & { readonly [Name in Optional]?: HostPort | false };

/**
 * Returns the node with the listeners that the others have, at its own host.
 *
 * @param known the nodes of `cluster.json`. An entry of the joining node itself is used first.
 * @throws ConfigError if the ports of the others do not show which port to use
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

/** The listeners in words, such as `HTTP 10.0.0.4:8104, peers 10.0.0.4:9104`. */
export function listenersText(node: NodeAddress): string {
  return Object.entries(addressesOf(node))
    .map(([name, address]) => `${NAMES[name] ?? name} ${addressText(address)}`)
    .join(', ');
}

/**
 * The address of a listener: at the port that all others use, or at the same distance from the HTTP port. Undefined: no
 * other node has such a listener.
 */
function listenerLike(name: Optional, http: HostPort, known: readonly NodeAddress[]): HostPort | undefined {
  const others = known.flatMap((node) => {
    const port = node[name]?.port;
    return port === undefined ? [] : [{ port, distance: port - node.http.port }];
  });
  if (others.length === 0) return undefined;
  const [port, ...otherPorts] = new Set(others.map((other) => other.port));
  const [distance = 0, ...otherDistances] = new Set(others.map((other) => other.distance));
  // With a single other node the distance counts, because several nodes on one machine need different ports.
  if (port !== undefined && otherPorts.length === 0 && others.length > 1) return { host: http.host, port };
  const far = http.port + distance;
  if (otherDistances.length === 0 && far >= 1 && far <= PORT_MAX) return { host: http.host, port: far };
  throw new ConfigError(
    `--${name}`,
    `must be given, as host:port, or ${NONE[name]} for none: the ports of the other nodes do not say which one is meant`,
  );
}
