/**
 * Sends the requests of this page to its node, with the token of the viewer if there is one. The token is kept in
 * session storage, so it belongs to this tab and is gone when the tab closes.
 */

const TOKEN = 'quorate-token';
/** Long, because a change of rules waits for all partitions. */
const ANSWER_MILLIS_MAX = 30_000;

/** The token of this tab, if there is one. */
export function tokenOf(): string | undefined {
  return sessionStorage.getItem(TOKEN) ?? undefined;
}

/** Stores the token for this tab; undefined removes it. */
export function keepToken(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/** Request headers that carry the token. */
export function headersWith(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** The answer to a request. */
export interface Answer {
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly etag: string | undefined;
  readonly body: unknown;
}

/** The parts of a request, if it is more than a plain GET. */
export interface Asked {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent instead of `body`, unchanged: a rules document. */
  readonly yaml?: string;
  readonly ifMatch?: string | undefined;
}

/** Sends one request to the node. It never throws: a failure is an answer with status 0. */
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

/** The error message of an answer, in the words of the node. */
export function messageOf({ status, body }: Answer): string {
  const { message, detail, error } = (body ?? {}) as {
    readonly message?: string;
    readonly detail?: string;
    readonly error?: { readonly message?: string };
  };
  return error?.message ?? message ?? detail ?? `status ${status}`;
}

/** Rights of the viewer. `open`: the cluster asks for no tokens, and lets no browser change anything. */
export type Role = 'open' | 'read' | 'admin';

/** Finds out the role of a token: only role `admin` may list tokens. */
export async function roleOf(token: string | undefined): Promise<Role> {
  if (token === undefined) return 'open';
  const { status } = await ask('/v1/tokens');
  return status === 200 ? 'admin' : 'read';
}
