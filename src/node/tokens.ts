/**
 * Who may ask this node what: the tokens of group 0, and beside them those of its file. Changes that this node was asked for are
 * handed to group 0, and answered when the nodes that can be reached know of them. It keeps no secret, and no caller: every
 * request is judged by what group 0 says here at that moment.
 */
import {
  type AccessBehindDoor,
  type Caller,
  infoOfToken,
  partsOfToken,
  TOKEN_FAILURES,
  type TokenAsked,
  type TokenChange,
  type TokenCreated,
  type TokenEntry,
  type TokenFailure,
  type TokenInfo,
  type TokenRevoked,
} from '../api/token.ts';
import { drawToken, isSecretOf } from '../config/token-secret.ts';
import type { NodeId } from '../../raft/types.ts';
import type { MetaState } from '../meta/meta-state.ts';
import { hasAdmin, type TokenTable } from '../meta/token-table.ts';
import type { ClusterChange, ClusterChangeResult } from '../wire/cluster-changes.ts';
import type { NodeReport } from '../wire/node-report.ts';
import type { NodeCoreInit } from './node-core-init.ts';

export interface TokensInit {
  readonly nodeId: NodeId;
  /** Of the file of this node. */
  readonly configured: readonly TokenEntry[];
  readonly state: () => MetaState | undefined;
  readonly isConnected: (peer: NodeId) => boolean;
  readonly wallMillis: () => number;
  readonly change: (change: ClusterChange, done: (result: ClusterChangeResult) => void) => void;
}

type Done = (result: TokenRevoked) => void;

interface Waiting {
  readonly version: number;
  readonly untilTick: number;
  readonly done: Done;
}

/** A node that can be reached and does not say for so long that it knows is told to be pending. */
const PATIENCE_TICKS = 500;
/** What group 0 lets wait, too. */
const WAITING_MAX = 64;

/** Those of a node whose core is made of `init`. */
export function newTokens(
  { nodeId, config, isConnected, clocks }: NodeCoreInit,
  { state, change }: Pick<TokensInit, 'state' | 'change'>,
): Tokens {
  const { tokens: configured = [] } = config;
  return new Tokens({ nodeId, configured, isConnected, wallMillis: clocks.wallMillis, state, change });
}

export class Tokens implements Omit<AccessBehindDoor, 'failed'> {
  readonly #init: TokensInit;
  /** What `#byId` was made of. */
  #table: TokenTable | undefined;
  #byId: ReadonlyMap<string, TokenEntry>;
  #isClosed: boolean;
  /** By node: up to which version it said that it knows the tokens. No more than there are nodes. */
  readonly #heard = new Map<NodeId, number>();
  #waiting: Waiting[] = [];
  #ticks = 0;

  constructor(init: TokensInit) {
    this.#init = init;
    this.#byId = byId(init.configured);
    this.#isClosed = hasAdmin(init.configured);
  }

  /** Of the tokens that this node knows; 0 while nobody made one. */
  get version(): number {
    return this.#init.state()?.tokens?.version ?? 0;
  }

  readonly mode = (): 'open' | 'closed' => {
    this.#look();
    return this.#isClosed ? 'closed' : 'open';
  };

  readonly callerOf = (token: string): Caller | undefined => {
    const parts = partsOfToken(token);
    if (parts === undefined) return undefined;
    const entry = this.#look().get(parts.id);
    return isSecretOf(entry, parts.secret) ? entry : undefined;
  };

  readonly callerById = (id: string): Caller | undefined => this.#look().get(id);

  readonly tokens = (): (TokenInfo & { readonly isConfigured: boolean })[] =>
    [...this.#look().values()].map((entry) => ({
      ...infoOfToken(entry),
      isConfigured: this.#isConfigured(entry.id),
    }));

  /** What group 0 says now, by id. */
  #look(): ReadonlyMap<string, TokenEntry> {
    const table = this.#init.state()?.tokens;
    if (table !== this.#table) {
      const all = [...(table?.entries ?? []), ...this.#init.configured];
      this.#table = table;
      this.#byId = byId(all);
      this.#isClosed = hasAdmin(all);
    }
    return this.#byId;
  }

  #isConfigured(id: string): boolean {
    return this.#init.configured.some((entry) => entry.id === id);
  }

  readonly create = (asked: TokenAsked, done: (result: TokenCreated) => void): void => {
    const { token, entry } = drawToken(asked, Math.floor(this.#init.wallMillis()));
    const info = infoOfToken(entry);
    if (this.#look().has(entry.id)) return done({ ok: false, reason: 'tokenExists' });
    this.#change({ create: entry }, (result) => {
      done(result.ok ? { ok: true, info, token, pending: result.pending } : result);
    });
  };

  readonly revoke = (id: string, canOpen: boolean, done: Done): void => {
    if (this.#isConfigured(id)) return done({ ok: false, reason: 'configuredToken' });
    // With one in its file this node stays closed.
    this.#change({ revoke: id, canOpen: canOpen || hasAdmin(this.#init.configured) }, done);
  };

  #change(change: TokenChange, done: Done): void {
    if (this.#waiting.length >= WAITING_MAX) return done({ ok: false, reason: 'overloaded' });
    this.#init.change({ type: 'tokens', change }, (result) => {
      if (result.ok)
        this.#waiting.push({ version: result.version, done, untilTick: this.#ticks + PATIENCE_TICKS });
      else done({ ok: false, reason: isKnown(result.reason) ? result.reason : 'unknownOutcome' });
    });
  }

  /** What another node says of itself. */
  heard({ node, tokensVersion = 0 }: NodeReport): void {
    this.#heard.set(node, tokensVersion);
  }

  tick(): void {
    this.#ticks += 1;
    if (this.#waiting.length === 0) return;
    const { nodeId, isConnected } = this.#init;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) {
      const pending = this.#pendingAt(each.version);
      const isReachable = pending.some((node) => node === nodeId || isConnected(node));
      if (!isReachable || this.#ticks >= each.untilTick) each.done({ ok: true, pending });
      else this.#waiting.push(each);
    }
  }

  /** The nodes of which nobody knows that they know this version. */
  #pendingAt(version: number): NodeId[] {
    const { nodeId, state } = this.#init;
    const { nodes = [], leaving = [] } = state() ?? {};
    const known = (id: NodeId): number => (id === nodeId ? this.version : (this.#heard.get(id) ?? 0));
    return [...nodes, ...leaving].map(({ id }) => id).filter((id) => known(id) < version);
  }
}

function byId(entries: readonly TokenEntry[]): ReadonlyMap<string, TokenEntry> {
  return new Map(entries.map((entry) => [entry.id, entry]));
}

function isKnown(reason: string): reason is TokenFailure {
  return reason in TOKEN_FAILURES;
}
