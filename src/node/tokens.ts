/**
 * Who may ask this node what: the tokens of group 0, and beside them those of its file. Changes that this node was asked for are
 * handed to group 0, and answered when the nodes that can be reached know of them. It keeps no secret, and no caller: every
 * request is judged by what group 0 says here at that moment.
 */
import type { ChangeDone, ChangeMade, TokenChange } from '../api/cluster-change.ts';
import {
  type AccessBehindDoor,
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

export interface TokensInit {
  readonly nodeId: NodeId;
  /** Of the file of this node. */
  readonly configured: readonly TokenEntry[];
  readonly state: () => MetaState | undefined;
  readonly isConnected: (peer: NodeId) => boolean;
  readonly wallMillis: () => number;
  readonly change: (change: MetaChange, done: ChangeDone) => void;
}

const IN_DOUBT = 'the tokens may have been changed: list them, and revoke what nobody was shown';

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
  readonly #awaited = new AwaitedChanges();

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

  /** @param done told when all nodes that can be reached know, or after a few seconds; never if this process ends before */
  change(change: TokenChange, done: ChangeDone): void {
    if ('revoke' in change) {
      const { revoke, canOpen } = change;
      if (this.#isConfigured(revoke)) return done({ ok: false, reason: 'configuredToken' });
      // With one in its file this node stays closed.
      return this.#ask({ revoke, canOpen: canOpen || hasAdmin(this.#init.configured) }, {}, done);
    }
    const { token, entry } = drawToken(change.create, Math.floor(this.#init.wallMillis()));
    if (this.#look().has(entry.id)) return done({ ok: false, reason: 'tokenExists' });
    this.#ask({ create: entry }, { made: { info: infoOfToken(entry), token } }, done);
  }

  #ask(change: TokenEntryChange, told: Pick<ChangeMade, 'made'>, done: ChangeDone): void {
    if (this.#awaited.isFull) return done({ ok: false, reason: 'overloaded' });
    const { nodeId, isConnected } = this.#init;
    this.#init.change({ type: 'tokens', change }, (result) => {
      if (result.ok)
        this.#awaited.add({
          made: { ...result, ...told },
          pending: () => this.#pendingAt(result.version),
          mayHear: (pending) => pending.some((node) => node === nodeId || isConnected(node)),
          done,
        });
      else done({ ...result, ...(result.reason === 'unknownOutcome' && { message: IN_DOUBT }) });
    });
  }

  /** What another node says of itself. */
  heard({ node, tokensVersion = 0 }: NodeReport): void {
    this.#heard.set(node, tokensVersion);
  }

  tick(): void {
    this.#awaited.tick();
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
