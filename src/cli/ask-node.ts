/**
 * Sends HTTP requests to a node, for the commands that ask a running cluster. `askNode` sends one request, never
 * retries, and reports failures as a response too. `askUntilAccepted` repeats a change until it is decided.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDistrust } from '../tls/peer-connections.ts';
import { nodeFetch, speaksTls, authorization, TOKEN_VARIABLE } from './node-fetch.ts';

/** A command failed: the cluster refused it, no node could be asked, or it was not finished in time. */
export class ClusterCommandError extends Error {
  readonly code = 'CLUSTER_COMMAND';
  override readonly name = 'ClusterCommandError';
  readonly outcome: 'refused' | 'unreachable' | 'unfinished';

  constructor(message: string, outcome: ClusterCommandError['outcome'] = 'refused') {
    super(message);
    this.outcome = outcome;
  }
}

/** The JSON object in the body of a response. */
export type NodeBody = Readonly<Record<string, unknown>>;
/**
 * A response. Status 0 means that there was none, for the reason in `message`. `isUnreachable`: no connection was made,
 * so nothing was sent.
 */
export interface NodeResponse {
  readonly status: number;
  readonly body: NodeBody;
  readonly isUnreachable?: boolean;
}

/** The request, if it is more than a plain GET. */
export interface Sent {
  readonly method?: string;
  /** The type of the body, if there is one. */
  readonly contentType?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends a request with the token of this process, if there is one.
 *
 * @param timeoutMillis longest time until the whole answer is read
 * @throws ClusterCommandError if the certificate of the node is not trusted
 * @throws ConfigError if the token is malformed
 */
export async function askNode(url: URL, timeoutMillis: number, sent: Sent = {}): Promise<NodeResponse> {
  const { method = 'GET', contentType, body: payload, headers } = sent;
  const type = contentType === undefined ? {} : { 'content-type': contentType };
  const shown = authorization();
  try {
    const response = await nodeFetch(url, {
      signal: AbortSignal.timeout(timeoutMillis),
      method,
      headers: { ...shown, ...type, ...headers },
      ...(payload !== undefined && { body: payload }),
    });
    const body = (await response.json()) as NodeBody;
    if (response.status !== 401) return { status: response.status, body };
    const message = `no valid token was sent: put it into ${TOKEN_VARIABLE}, or name its file with --token-file`;
    return { status: response.status, body: { ...body, message } };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (url.protocol === 'https:' && typeof code === 'string' && code !== 'ABORT_ERR' && isDistrust({ code }))
      throw new ClusterCommandError(`${url.origin} ${distrust(code, url)}`);
    const isTimeout = cause instanceof Error && cause.name === 'TimeoutError';
    if (url.protocol === 'http:' && !isTimeout && !isNoConnection(cause) && (await speaksTls(url)))
      throw new ClusterCommandError(
        `${url.origin} speaks TLS, not plain HTTP: give the CA of its cluster with --ca, such as certs/ca.crt in its directory`,
      );
    const waited = timeoutMillis < 1_000 ? `${timeoutMillis} ms` : `${Math.round(timeoutMillis / 1_000)} s`;
    const isUnreachable = isNoConnection(cause);
    const why = String(code ?? cause);
    const broken = isUnreachable ? why : `the connection broke before an answer (${why})`;
    return { status: 0, body: { message: isTimeout ? `no answer for ${waited}` : broken }, isUnreachable };
  }
}

/** How the error begins if a certificate is not for the address that was asked. */
export const FOREIGN_CERTIFICATE = 'has a certificate that is not for';

function distrust(code: string, { hostname }: URL): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `${FOREIGN_CERTIFICATE} ${hostname}: use a name in the certificate, or issue it again with \`quorate certs issue <id> --hostname ${hostname}\``;
  return code === 'EPROTO'
    ? `does not speak TLS as it should (${code}): if it speaks none, give an http:// address and no --ca`
    : `is not trusted (${code}): give the CA of the cluster with --ca`;
}

/** Returns true if no connection was made. If one was made and broke, the request may have been carried out. */
function isNoConnection(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  // Node tried all addresses of a host name.
  if (cause instanceof AggregateError) return cause.errors.every(isNoConnection);
  const { syscall, code } = cause as NodeJS.ErrnoException;
  const isUnsent = code === 'UND_ERR_CONNECT_TIMEOUT' || cause.message === 'bad port';
  return isUnsent || syscall === 'connect' || syscall === 'getaddrinfo';
}

/** The error message in the body of an answer. */
export function messageOf(body: NodeBody): string | undefined {
  const { message, error } = body;
  if (typeof message === 'string') return message;
  return typeof error === 'object' && error !== null ? messageOf(error as NodeBody) : undefined;
}

/** A change, and how long to try. */
interface Accepting {
  readonly url: URL;
  readonly sent: Sent;
  /** A time of `performance.now()`. */
  readonly deadlineMillis: number;
  /** The decision of group 0 about the change, for messages such as `not accepted yet`. */
  readonly verb: 'accepted' | 'decided';
  /** Makes the error for an address at which no node listens. @param message the reason */
  readonly unreachable: (message: string) => ClusterCommandError;
  readonly say: (line: string) => void;
}

const AGAIN_MILLIS = 500;
/** Longest time for one answer. The node may wait for its log. */
const CHANGE_MILLIS_MAX = 10_000;

/**
 * Sends a change to a node again and again until group 0 has decided. Sending it twice does no harm.
 *
 * @throws ClusterCommandError if the change is refused, no node could be asked, or there was no answer in time
 */
export async function askUntilAccepted(init: Accepting): Promise<void> {
  const { url, sent, deadlineMillis, verb, unreachable, say } = init;
  for (;;) {
    const { status, body, isUnreachable } = await askNode(url, CHANGE_MILLIS_MAX, sent);
    if (status === 200) return;
    const message = messageOf(body) ?? `status ${status}`;
    if (isUnreachable === true) throw unreachable(message);
    if (status !== 0 && status !== 503) throw new ClusterCommandError(`${url.origin}: ${message}`);
    if (performance.now() >= deadlineMillis)
      throw new ClusterCommandError(`not ${verb} in time: ${message}; it may be asked again`, 'unfinished');
    say(`not ${verb} yet (${message}); asking again`);
    await delay(AGAIN_MILLIS);
  }
}
