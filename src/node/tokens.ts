/**
 * The tokens that give access to this node: those in group 0, and those in its file. Changes are handed to group 0
 * and acknowledged when the reachable nodes have them. No secret and no caller is stored: every request is checked
 * against the current state of group 0.
 */
import type { ChangeDone, ChangeMade, TokenChange } from '../api/cluster-change.ts';
import {
  type AccessApi,
  type Caller,
  infoOfToken,
  partsOfToken,
  type TokenEntry,
  type TokenInfo,
} from '../api/token.ts';
import { drawToken, isSecretOf } from '../config/token-secret.ts';
import type { NodeId } from '../../raft/types.ts';
import type { MetaChange, MetaState } from '../meta/cluster-state.ts';
import { hasAdmin, type TokenEntryChange, type TokenTable } from '../meta/token-table.ts';
import type { NodeReport } from '../wire/node-report.ts';
import { AwaitedChanges } from './awaited-changes.ts';
import type { NodeCoreInit } from './node-core-init.ts';

/** What `Tokens` needs. */
export interface TokensInit {
  readonly nodeId: NodeId;
  /** Tokens in the file of this node. */
  readonly configured: readonly TokenEntry[];
  readonly state: () => MetaState | undefined;
  readonly isConnected: (peer: NodeId) => boolean;
  readonly wallMillis: () => number;
  readonly change: (change: MetaChange, done: ChangeDone) => void;
}

const IN_DOUBT =
  'the tokens may have been changed: list them, and revoke those whose secret nobody was shown';

/** The tokens of a node core. */
export function newTokens(
  { nodeId, config, isConnected, clocks }: NodeCoreInit,
  { state, change }: Pick<TokensInit, 'state' | 'change'>,
): Tokens {
  const { tokens: configured = [] } = config;
  return new Tokens({ nodeId, configured, isConnected, wallMillis: clocks.wallMillis, state, change });
}

/** The tokens, as one node knows and changes them. */
export class Tokens implements Omit<AccessApi, 'failed'> {
  readonly #init: TokensInit;
  /** The table that `#byId` was made of. */
  #table: TokenTable | undefined;
  #byId: ReadonlyMap<string, TokenEntry>;
  #isClosed: boolean;
  /** By node: the version of the tokens that it has reported. */
  readonly #heard = new Map<NodeId, number>();
  readonly #awaited = new AwaitedChanges();

  constructor(init: TokensInit) {
    this.#init = init;
    this.#byId = byId(init.configured);
    this.#isClosed = hasAdmin(init.configured);
  }

  /** Version of the tokens known here; 0 if there are none yet. */
  get version(): number {
    return this.#init.state()?.tokens?.version ?? 0;
  }

  /** `closed`: every request needs a token. */
  readonly mode = (): 'open' | 'closed' => {
    this.#currentById();
    return this.#isClosed ? 'closed' : 'open';
  };

  /** The caller with this token; undefined if it is wrong. */
  readonly callerOf = (token: string): Caller | undefined => {
    const parts = partsOfToken(token);
    if (parts === undefined) return undefined;
    const entry = this.#currentById().get(parts.id);
    return isSecretOf(entry, parts.secret) ? entry : undefined;
  };

  /** The caller with this token id. */
  readonly callerById = (id: string): Caller | undefined => this.#currentById().get(id);

  /** All tokens without their secrets. */
  readonly tokens = (): (TokenInfo & { readonly isConfigured: boolean })[] =>
    [...this.#currentById().values()].map((entry) => ({
      ...infoOfToken(entry),
      isConfigured: this.#isConfigured(entry.id),
    }));

  /** The current tokens by id. */
  #currentById(): ReadonlyMap<string, TokenEntry> {
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

  /**
   * Creates or revokes a token. @param done called when all reachable nodes know, or after a few seconds; never if
   * this process ends before
   */
  change(change: TokenChange, done: ChangeDone): void {
    if ('revoke' in change) {
      const { revoke, canOpen } = change;
      if (this.#isConfigured(revoke)) return done({ ok: false, reason: 'configuredToken' });
      // A token in the file keeps this node closed anyway.
      return this.#ask({ revoke, canOpen: canOpen || hasAdmin(this.#init.configured) }, {}, done);
    }
    const { token, entry } = drawToken(change.create, Math.floor(this.#init.wallMillis()));
    if (this.#currentById().has(entry.id)) return done({ ok: false, reason: 'tokenExists' });
    this.#ask({ create: entry }, { made: { info: infoOfToken(entry), token } }, done);
  }

  #ask(change: TokenEntryChange, made: Pick<ChangeMade, 'made'>, done: ChangeDone): void {
    if (this.#awaited.isFull) return done({ ok: false, reason: 'overloaded' });
    const { nodeId, isConnected } = this.#init;
    this.#init.change({ type: 'tokens', change }, (result) => {
      if (result.ok)
        this.#awaited.add({
          made: { ...result, ...made },
          pending: () => this.#pendingAt(result.version),
          mayHear: (pending) => pending.some((node) => node === nodeId || isConnected(node)),
          done,
        });
      else done({ ...result, ...(result.reason === 'unknownOutcome' && { message: IN_DOUBT }) });
    });
  }

  /** Takes the report of another node. */
  heard({ node, tokensVersion = 0 }: NodeReport): void {
    this.#heard.set(node, tokensVersion);
  }

  /** Call once per tick. */
  tick(): void {
    this.#awaited.tick();
  }

  /** The nodes that have not reported this version. */
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
