/**
 * The start rule: who listens where other machines can come must know whom it speaks with. Addresses and settings only; it
 * opens nothing.
 */
import { addressText, type NodeAddress } from '../api/node-address.ts';
import { ConfigError } from '../config/config.ts';
import type { TlsSettings } from '../config/tls-settings.ts';

/** How a node knows whom it speaks with. */
export interface Safeguards {
  readonly tls: TlsSettings | undefined;
  /** Its doors let in who shows a token, and nobody else. */
  readonly hasTokens: boolean;
}

/** Something that an address may lack. */
interface Requirement {
  readonly at: readonly ('http' | 'resp' | 'grpc' | 'peer')[];
  /** Follows "needs". */
  readonly what: string;
  readonly isMet: (has: Safeguards) => boolean;
}

const REQUIREMENTS: readonly Requirement[] = [
  { at: ['peer'], what: 'TLS (`tls` in cluster.json)', isMet: ({ tls }) => tls !== undefined },
  {
    at: ['http', 'resp', 'grpc'],
    what: 'TLS (`tls` with `doors` in cluster.json)',
    isMet: ({ tls }) => tls?.doors !== undefined,
  },
  {
    at: ['http', 'resp', 'grpc'],
    what: 'a token of role admin (`quorate init --admin-token`, or `tokens create` on a node of a cluster that runs)',
    isMet: ({ hasTokens }) => hasTokens,
  },
];

const LOOPBACK = /^(?:(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|localhost)$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** Each address that lacks something, in a sentence without an end; empty: it may listen. */
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
 * What is to be said in the log when the node starts; undefined: nothing, for nobody can come who must not.
 *
 * @param isInsecure it is to start whatever it lacks
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
  const onLoopback = lackingAt(node, has, true);
  if (onLoopback.length === 0) return undefined;
  return `open to every program on this machine: ${onLoopback.join(', ')} to be closed`;
}
