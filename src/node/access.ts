/**
 * Whom the doors of this node let in, from before its core is loaded: until then by the tokens of its file alone. It counts those
 * that showed a wrong token.
 */
import {
  type AccessBehindDoor,
  type Caller,
  infoOfToken,
  partsOfToken,
  type TokenEntry,
} from '../api/token.ts';
import { isSecretOf } from '../config/token-secret.ts';
import type { ClusterConfig } from '../config/config.ts';
import { hasAdmin } from '../meta/token-table.ts';
import type { KnownMembers } from './member-cache.ts';
import type { Tokens } from './tokens.ts';

type AuthFailures = Record<'http' | 'resp' | 'grpc', number>;

export interface AccessInit {
  /** Of the file of this node. */
  readonly configured: readonly TokenEntry[];
  /** Undefined until everything is loaded. */
  readonly tokens: () => Tokens | undefined;
  /** What this node last knew was that everybody must show a token, and what group 0 says here now may be older. */
  readonly isBehind: () => boolean;
}

/**
 * Whether a node that starts asks everybody for a token, by its file and by what it knew last: for whoever decides where it may listen.
 */
export function hasTokens(
  { tokens = [] }: Pick<ClusterConfig, 'tokens'>,
  known: Pick<KnownMembers, 'tokens'> | undefined,
): boolean {
  return hasAdmin(tokens) || known?.tokens?.isClosed === true;
}

export interface Access extends AccessBehindDoor {
  /** How often a wrong token was shown, since the node started. */
  readonly failures: Readonly<AuthFailures>;
}

/** Who asks is let in by what group 0 says here; see `AccessBehindDoor`. */
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
    failed(door) {
      failures[door] += 1;
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
