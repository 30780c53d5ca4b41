/**
 * Asks a node of a running cluster over HTTP, for the commands that do: one request, whatever becomes of it is an answer. It
 * repeats nothing, and knows no route.
 */
import { isDistrust } from '../tls/peer-connections.ts';
import { nodeFetch } from './node-fetch.ts';

/** The cluster refuses what was asked, nobody could be asked, or it was not done in time. */
export class ClusterCommandError extends Error {
  readonly code = 'CLUSTER_COMMAND';
  override readonly name = 'ClusterCommandError';
  readonly outcome: 'refused' | 'unreachable' | 'unfinished';

  constructor(message: string, outcome: ClusterCommandError['outcome'] = 'refused') {
    super(message);
    this.outcome = outcome;
  }
}

export type NodeBody = Readonly<Record<string, unknown>>;
/** Status 0: nobody answered, for the reason in `message`; `isUnreachable`: there is no connection at all. */
export interface NodeResponse {
  readonly status: number;
  readonly body: NodeBody;
  readonly isUnreachable?: boolean;
}

/** What is sent with another method than GET. */
export interface Sent {
  readonly method: string;
  /** Of a body, if there is one. */
  readonly contentType?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** GET, or what `sent` says. @throws ClusterCommandError if who answers there is not trusted */
export async function askNode(url: URL, timeoutMillis: number, sent?: Sent): Promise<NodeResponse> {
  try {
    const response = await nodeFetch(url, {
      signal: AbortSignal.timeout(timeoutMillis),
      ...(sent !== undefined && {
        method: sent.method,
        headers: {
          ...(sent.contentType !== undefined && { 'content-type': sent.contentType }),
          ...sent.headers,
        },
        ...(sent.body !== undefined && { body: sent.body }),
      }),
    });
    return { status: response.status, body: (await response.json()) as NodeBody };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (url.protocol === 'https:' && typeof code === 'string' && code !== 'ABORT_ERR' && isDistrust({ code }))
      throw new ClusterCommandError(
        `${url.origin} is not trusted (${code}): give the CA of the cluster with --ca, and a host that is in the certificate of the node`,
      );
    const isTimeout = cause instanceof Error && cause.name === 'TimeoutError';
    const waited = timeoutMillis < 1_000 ? `${timeoutMillis} ms` : `${Math.round(timeoutMillis / 1_000)} s`;
    const message = isTimeout ? `no answer for ${waited}` : String(code ?? cause);
    return { status: 0, body: { message }, isUnreachable: !isTimeout };
  }
}

/** What an answer says in words. */
export function messageOf(body: NodeBody): string | undefined {
  const { message, error } = body;
  if (typeof message === 'string') return message;
  return typeof error === 'object' && error !== null ? messageOf(error as NodeBody) : undefined;
}
