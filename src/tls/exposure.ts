/**
 * The start rule: a node that listens on an address other machines can reach must authenticate whom it talks to. It
 * only checks addresses and settings, and opens nothing.
 */
import { addressText, type NodeAddress } from '../api/node-address.ts';
import { ConfigError } from '../config/config.ts';
import type { TlsSettings } from '../config/tls-settings.ts';

/** The means by which a node authenticates others. */
export interface Safeguards {
  readonly tls: TlsSettings | undefined;
  /** True if its API listeners require a token. */
  readonly hasTokens: boolean;
}

/** One requirement for an address. */
interface Requirement {
  readonly at: readonly ('http' | 'resp' | 'grpc' | 'peer')[];
  /** Follows "needs" in a message. */
  readonly what: string;
  readonly isMet: (has: Safeguards) => boolean;
}

const REQUIREMENTS: readonly Requirement[] = [
  { at: ['peer'], what: 'TLS (`tls` in cluster.json)', isMet: ({ tls }) => tls !== undefined },
  {
    at: ['http', 'resp', 'grpc'],
    what: 'TLS (`tls` with `listeners` in cluster.json)',
    isMet: ({ tls }) => tls?.listeners !== undefined,
  },
  {
    at: ['http', 'resp', 'grpc'],
    what: 'a token of role admin (`quorate init --admin-token`, or `tokens create` on a node of a cluster that runs)',
    isMet: ({ hasTokens }) => hasTokens,
  },
];

const LOOPBACK = /^(?:(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|localhost)$/i;

/** True if a host is a loopback address or `localhost`. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** For each address that lacks a requirement, a message without a full stop. Empty if nothing is missing. */
function lackingAt(node: NodeAddress, has: Safeguards, onLoopback = false): readonly string[] {
  return REQUIREMENTS.filter(({ isMet }) => !isMet(has)).flatMap(({ at, what }) =>
    at.flatMap((name) => {
      const address = node[name];
      if (address === undefined || isLoopback(address.host) !== onLoopback) return [];
      return [`${name} address ${addressText(address)} needs ${what}`];
    }),
  );
}

/**
 * The warning to log when the node starts. Undefined if there is nothing to warn about.
 *
 * @param isInsecure start the node even if requirements are not met
 * @throws ConfigError naming the first address, what it lacks, and `--insecure`
 */
export function exposureOf(node: NodeAddress, has: Safeguards, isInsecure: boolean): string | undefined {
  const [first, ...others] = lackingAt(node, has);
  if (first !== undefined && !isInsecure)
    throw new ConfigError(
      `node ${node.id}`,
      `can be reached from other machines: its ${first}; see \`quorate certs --help\`, or start it with --insecure`,
    );
  if (first !== undefined)
    return `--insecure: anybody who reaches it can use it or pose as a peer: ${[first, ...others].join(', ')}`;
  if (lackingAt(node, has, true).length === 0) return undefined;
  const lacks = [
    ...(has.tls === undefined ? ['no TLS'] : []),
    ...(has.tls !== undefined && has.tls.listeners === undefined ? ['no TLS for clients'] : []),
    ...(has.hasTokens ? [] : ['no token of role admin']),
  ];
  return `open to every program on this machine (${lacks.join(' and ')}): see docs/operate/tls-and-tokens.md`;
}
