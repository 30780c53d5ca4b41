/** A fake of the access check, controlled by a test. At first the cluster is open. */
import type { AccessApi, Caller, TokenInfo } from '../../src/api/token.ts';

export class PlayedAccess implements AccessApi {
  /** The callers by their token. */
  readonly callers = new Map<string, Caller>();
  now: 'open' | 'closed' | 'unknown' = 'open';
  failures = 0;
  listed: (TokenInfo & { readonly isConfigured: boolean })[] = [];

  readonly mode = (): 'open' | 'closed' | 'unknown' => this.now;
  readonly callerOf = (token: string): Caller | undefined => this.callers.get(token);
  readonly callerById = (id: string): Caller | undefined =>
    [...this.callers.values()].find((caller) => caller.id === id);
  readonly tokens = (): (TokenInfo & { readonly isConfigured: boolean })[] => this.listed;
  readonly failed = (): void => {
    this.failures += 1;
  };
  /** From now on every caller needs a token. One token of each role is valid, `<role>-token`. */
  close(): void {
    this.now = 'closed';
    for (const role of ['decide', 'read', 'admin'] as const)
      this.callers.set(`${role}-token`, { id: `id${role}`, role });
  }
}
