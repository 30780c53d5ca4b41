/**
 * Controls access to the listeners of a node. Until the core is loaded, only the tokens in the node's file count.
 * Failed attempts are counted.
 */
import { type AccessApi, type Caller, infoOfToken, partsOfToken, type TokenEntry } from '../api/token.ts';
import { isSecretOf } from '../config/token-secret.ts';
import type { ClusterConfig } from '../config/config.ts';
import { hasAdmin } from '../meta/token-table.ts';
import type { KnownMembers } from './member-cache.ts';
import type { Tokens } from './tokens.ts';

type AuthFailures = Record<'http' | 'resp' | 'grpc', number>;

/** What `accessOf` needs. */
export interface AccessInit {
  /** Tokens in the file of this node. */
  readonly configured: readonly TokenEntry[];
  /** The replicated tokens; undefined until the core is loaded. */
  readonly tokens: () => Tokens | undefined;
  /**
   * When this node last ran, every request needed a token, and its state of group 0 has not caught up to that yet.
   */
  readonly isBehind: () => boolean;
}

/**
 * Whether a starting node requires a token of everybody, according to its file and to what it knew last. This
 * decides on which addresses it may listen.
 */
export function hasTokens(
  { tokens = [] }: Pick<ClusterConfig, 'tokens'>,
  known: Pick<KnownMembers, 'tokens'> | undefined,
): boolean {
  return hasAdmin(tokens) || known?.tokens?.isClosed === true;
}

/** Access control, with its count of failures. */
export interface Access extends AccessApi {
  /** Requests with a wrong token since the node started, by listener. */
  readonly failures: Readonly<AuthFailures>;
}

/** Access by what group 0 says on this node; see `AccessApi`. */
export function accessOf(init: AccessInit): Access {
  const { configured, tokens, isBehind } = init;
  const failures: AuthFailures = { http: 0, resp: 0, grpc: 0 };
  const isClosedByFile = hasAdmin(configured);
  const inFile = new Map(configured.map((entry) => [entry.id, entry]));
  const callerInFile = (token: string): Caller | undefined => {
    const parts = partsOfToken(token);
    const entry = parts && inFile.get(parts.id);
    return parts !== undefined && isSecretOf(entry, parts.secret) ? entry : undefined;
  };
  return {
    failures,
    failed(listener) {
      failures[listener] += 1;
    },
    mode() {
      if (isClosedByFile) return 'closed';
      if (isBehind()) return 'unknown';
      return tokens()?.mode() ?? 'open';
    },
    callerOf: (token) => (tokens()?.callerOf ?? callerInFile)(token),
    callerById: (id) => (tokens()?.callerById ?? inFile.get.bind(inFile))(id),
    tokens: () =>
      tokens()?.tokens() ?? configured.map((entry) => ({ ...infoOfToken(entry), isConfigured: true })),
  };
}
