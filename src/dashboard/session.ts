/**
 * How this page asks its node: with the token of whoever looks, if there is one. The token is kept in this tab alone, and for as
 * long as the tab is open.
 */

const TOKEN = 'quorate-token';
/** Changes of rules wait for all partitions. */
const ANSWER_MILLIS_MAX = 30_000;

export function tokenOf(): string | undefined {
  return sessionStorage.getItem(TOKEN) ?? undefined;
}

export function keepToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

export function headersWith(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

export interface Answer {
  /** 0: nobody answered. */
  readonly status: number;
  readonly etag: string | undefined;
  readonly body: unknown;
}

export interface Asked {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent instead as it is: a document of rules. */
  readonly yaml?: string;
  readonly ifMatch?: string | undefined;
}

/** Never throws. */
export async function ask(path: string, asked: Asked = {}): Promise<Answer> {
  const { method = 'GET', ifMatch } = asked;
  const sent = sentOf(asked);
  try {
    const response = await fetch(path, {
      method,
      cache: 'no-store',
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
      headers: {
        ...headersWith(tokenOf()),
        ...(sent !== undefined && { 'content-type': sent.type }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      },
      ...(sent !== undefined && { body: sent.body }),
    });
    const text = await response.text();
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? undefined,
      body: parsed(text),
    };
  } catch (error) {
    return { status: 0, etag: undefined, body: { message: `no answer: ${String(error)}` } };
  }
}

function sentOf({ body, yaml }: Asked): { readonly type: string; readonly body: string } | undefined {
  if (yaml !== undefined) return { type: 'application/yaml', body: yaml };
  return body === undefined ? undefined : { type: 'application/json', body: JSON.stringify(body) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return { message: text.slice(0, 200) };
  }
}

/** Why it was refused, as the node words it. */
export function messageOf({ status, body }: Answer): string {
  const { message, detail, error } = (body ?? {}) as {
    readonly message?: string;
    readonly detail?: string;
    readonly error?: { readonly message?: string };
  };
  return error?.message ?? message ?? detail ?? `status ${status}`;
}

/** What whoever looks may do: `open` where the cluster asks for no tokens, and no browser may change it. */
export type Role = 'open' | 'read' | 'admin';

/** Only one of role admin may list tokens. */
export async function roleOf(token: string | undefined): Promise<Role> {
  if (token === undefined) return 'open';
  const { status } = await ask('/v1/tokens');
  return status === 200 ? 'admin' : 'read';
}
