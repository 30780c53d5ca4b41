/**
 * Reads the data of a backup from a running cluster: snapshots of its groups, over HTTP, from the leader of each group.
 * It writes nothing.
 */
import { type BackupSnapshot, SNAPSHOT_HEADER } from '../api/backup.ts';
import { type ClusterReport, isClusterReport } from '../api/cluster-report.ts';
import { BackupError } from '../backup/backup-error.ts';
import { chunksIn } from '../backup/chunk-stream.ts';
import type { BackupSource } from '../backup/take-backup.ts';
import { askNode, ClusterCommandError, messageOf } from './ask-node.ts';
import { nodeFetch, authorization } from './node-fetch.ts';
import { readKnownRules } from './rules-in-cluster.ts';

const STATUS_MILLIS_MAX = 5_000;
/**
 * Longest time until the first byte of a snapshot. The leader first writes the snapshot to its disk, beside its other
 * work.
 */
const FIRST_BYTE_MILLIS_MAX = 120_000;
/**
 * Longest time without a byte before the stream counts as broken. It is long because with a low rate one chunk of a
 * quarter of a megabyte takes long.
 */
const SILENCE_MILLIS_MAX = 600_000;

/**
 * The cluster as the source of a backup.
 *
 * @param node the URL of a node
 * @param maxBytesPerSecond undefined: as fast as possible
 */
export function clusterSource(node: string, maxBytesPerSecond: number | undefined): BackupSource {
  const query = maxBytesPerSecond === undefined ? '' : `?maxBytesPerSecond=${maxBytesPerSecond}`;
  return {
    rulesVersion: async () => (await readKnownRules(node)).version,
    async open(group) {
      let problem = 'it has no leader';
      for (const url of urlsOf(node, await reportOf(node), group)) {
        const answer = await asked(new URL(`/v1/backup/${group}${query}`, url));
        if ('chunks' in answer) return answer;
        problem = `${url}: ${answer.message}`;
        if (answer.isFinal) throw new ClusterCommandError(problem);
      }
      throw new BackupError('unreachable', problem);
    },
  };
}

async function reportOf(node: string): Promise<ClusterReport> {
  const { status, body, isUnreachable } = await askNode(new URL('/v1/cluster', node), STATUS_MILLIS_MAX);
  if (status === 200 && isClusterReport(body)) return body;
  const message = messageOf(body) ?? `status ${status}`;
  if (isUnreachable === true || status === 0 || status === 503)
    throw new BackupError('unreachable', `${node}: ${message}`);
  throw new ClusterCommandError(`${node}: ${message}`);
}

/** The reported leader first, then the other nodes, because leadership may have moved. */
function urlsOf(node: string, { nodes, partitions }: ClusterReport, group: number): readonly string[] {
  const { protocol } = new URL(node);
  const leader = partitions.find(({ id }) => id === group - 1)?.leader;
  const byLeader = [...nodes].sort((a, b) => Number(b.id === leader) - Number(a.id === leader));
  return byLeader.flatMap(({ http }) => (http === null ? [] : [`${protocol}//${http}`]));
}

type Answer =
  | { readonly snapshot: BackupSnapshot; readonly chunks: AsyncIterable<Uint8Array> }
  /** True: other nodes would give the same answer, so stop asking. */
  | { readonly message: string; readonly isFinal: boolean };

async function asked(url: URL): Promise<Answer> {
  const silence = new Silence(FIRST_BYTE_MILLIS_MAX);
  try {
    const response = await nodeFetch(url, { signal: silence.signal, headers: authorization() });
    const snapshot = snapshotIn(response.headers.get(SNAPSHOT_HEADER));
    if (response.status === 200 && snapshot !== undefined && response.body !== null)
      return { snapshot, chunks: chunksIn(heard(response.body, silence)) };
    const body: unknown = await response.json().catch(() => ({}));
    silence.end();
    const message = messageOf(body as Record<string, unknown>) ?? `status ${response.status}`;
    return { message, isFinal: [400, 401, 403, 404].includes(response.status) };
  } catch (error) {
    silence.end();
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { message: cause instanceof Error ? cause.message : String(cause), isFinal: false };
  }
}

/** Yields the stream, and fails if the connection breaks or stays silent. */
async function* heard(body: ReadableStream<Uint8Array>, silence: Silence): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
      silence.wait(SILENCE_MILLIS_MAX);
      yield piece;
    }
  } catch (error) {
    throw new BackupError('unreachable', `the stream broke: ${error instanceof Error ? error.message : ''}`);
  } finally {
    silence.end();
  }
}

/** Aborts a request when nothing has come for too long. */
class Silence {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout;

  constructor(millis: number) {
    this.#timer = setTimeout(() => this.#controller.abort(new Error('no answer in time')), millis);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  wait(millis: number): void {
    this.end();
    this.#timer = setTimeout(
      () => this.#controller.abort(new Error(`nothing came for ${millis} ms`)),
      millis,
    );
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

const COUNTS = ['partitions', 'group', 'index', 'term', 'timeMillis', 'chunkCount', 'byteLength'] as const;

/** Checks the header, because any program may answer at the address. */
function snapshotIn(header: string | null): BackupSnapshot | undefined {
  if (header === null) return undefined;
  try {
    const value = JSON.parse(header) as Record<string, unknown>;
    const isSound =
      typeof value['clusterId'] === 'string' &&
      typeof value['hash'] === 'string' &&
      COUNTS.every((field) => Number.isSafeInteger(value[field]) && Number(value[field]) >= 0);
    return isSound ? (value as unknown as BackupSnapshot) : undefined;
  } catch {
    return undefined;
  }
}
