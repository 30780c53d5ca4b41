/** Who may ask what, as a test says: it begins with an open cluster. */
import type {
  AccessBehindDoor,
  Caller,
  TokenAsked,
  TokenCreated,
  TokenInfo,
  TokenRevoked,
} from '../../src/api/token.ts';

export class PlayedAccess implements AccessBehindDoor {
  /** By the token that is shown. */
  readonly callers = new Map<string, Caller>();
  now: 'open' | 'closed' | 'unknown' = 'open';
  failures = 0;
  listed: (TokenInfo & { readonly isConfigured: boolean })[] = [];
  readonly created: TokenAsked[] = [];
  readonly revoked: { readonly id: string; readonly canOpen: boolean }[] = [];
  createdAs: TokenCreated = { ok: false, reason: 'notLeader' };
  revokedAs: TokenRevoked = { ok: true, pending: [] };

  readonly mode = (): 'open' | 'closed' | 'unknown' => this.now;
  readonly callerOf = (token: string): Caller | undefined => this.callers.get(token);
  readonly callerById = (id: string): Caller | undefined =>
    [...this.callers.values()].find((caller) => caller.id === id);
  readonly tokens = (): (TokenInfo & { readonly isConfigured: boolean })[] => this.listed;
  readonly failed = (): void => {
    this.failures += 1;
  };
  readonly create = (asked: TokenAsked, done: (result: TokenCreated) => void): void => {
    this.created.push(asked);
    done(this.createdAs);
  };
  readonly revoke = (id: string, canOpen: boolean, done: (result: TokenRevoked) => void): void => {
    this.revoked.push({ id, canOpen });
    done(this.revokedAs);
  };

  /** From now on everybody must show a token, and these are valid: one of each role, `<role>-token`. */
  close(): void {
    this.now = 'closed';
    for (const role of ['decide', 'read', 'admin'] as const)
      this.callers.set(`${role}-token`, { id: `id${role}`, role });
  }
}
