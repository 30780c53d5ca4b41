/** Node processes of a local cluster: starting, watching, stopping. Used by `npm start`, tests and benches. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type ClusterReport, isClusterReport } from '../src/api/cluster-report.ts';
import type { NodeAddress } from '../src/api/node-address.ts';
import type { Readiness } from '../src/api/readiness.ts';
import { doorUrl } from '../src/cli/door-url.ts';
import { nodeFetch, readAuthorities, trustOnly } from '../src/cli/node-fetch.ts';
import { NO_NODE } from '../raft/types.ts';
import { resolvePath } from '../src/tls/credentials.ts';
import { authorization, TOKEN_VARIABLE } from '../src/cli/shown-token.ts';
import { type ClusterConfig, ConfigError } from '../src/config/config.ts';
import { logPathOf, maybeRotate } from './node-log.ts';
import { StartProgress } from './start-progress.ts';

/** The compiled command, whether this file runs compiled (dist/cluster) or from source (cluster). */
const here = dirname(fileURLToPath(import.meta.url));
const root = here.endsWith(join('dist', 'cluster')) ? join(here, '..', '..') : join(here, '..');
const CLI = join(root, 'dist', 'src', 'cli', 'main.js');

/**
 * The collector copies whatever lives while it looks, and a request lives a tenth of a second under load: with the 16 MiB that Node
 * begins with, half of what it looked at was still in use.
 */
const YOUNG_MIB = 32;

/** How a process ended: one of the two is null. */
export interface NodeExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface NodeProcess {
  readonly id: number;
  readonly child: ChildProcess;
  readonly exited: Promise<NodeExit>;
  readonly logPath: string;
  /** Why it ended, in its own words, if it said so. */
  readonly lastWords: () => string | undefined;
  /** Keeps its log short: see node-log.ts. */
  readonly boundLog: () => void;
}

/** A command complains in one such line at its end; V8 has its own. */
const LAST_WORDS = /^(?:quorate: |FATAL ERROR: )(.*)$/gm;
const LAST_WORDS_BYTES_MAX = 16_384;

/** The last complaint in a log since it was `sizeBefore` bytes long. */
function lastWordsIn(logPath: string, sizeBefore: number): string | undefined {
  const log = openSync(logPath, 'r');
  try {
    const { size } = fstatSync(log);
    const start = Math.max(sizeBefore, size - LAST_WORDS_BYTES_MAX);
    const tail = Buffer.alloc(Math.max(0, size - start));
    const length = readSync(log, tail, 0, tail.length, start);
    return [...tail.toString('utf8', 0, length).matchAll(LAST_WORDS)].at(-1)?.[1];
  } finally {
    closeSync(log);
  }
}

/** Turns the command line of a node into another one that runs it, under some limit for example. */
export type CommandWrapper = (command: readonly string[]) => readonly string[];

/** Starts a node whose output goes to `logs/node-<id>.log` in the cluster's directory. It ends with this process. */
export function startNodeProcess(
  directory: string,
  id: number,
  wrap: CommandWrapper = (command) => command,
): NodeProcess {
  const logPath = logPathOf(directory, id);
  mkdirSync(dirname(logPath), { recursive: true });
  const log = openSync(logPath, 'a');
  let sizeBefore = fstatSync(log).size;
  const [command = '', ...args] = wrap([
    process.execPath,
    '--enable-source-maps',
    `--max-semi-space-size=${YOUNG_MIB}`,
    CLI,
    'node',
    String(id),
    '--data',
    directory,
  ]);
  const child = spawn(command, args, {
    stdio: ['ignore', log, log, 'ipc'],
    // One thread of libuv's pool for LevelDB's synced write, of which there is one at a time, and one for names and files;
    // more of them only wake each other. Names never take the last one.
    // A node has no use for the token of whoever starts it.
    env: { ...process.env, [TOKEN_VARIABLE]: undefined, UV_THREADPOOL_SIZE: '2' },
  });
  closeSync(log);
  const exited = new Promise<NodeExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: -1, signal: null }));
  });
  return {
    id,
    child,
    exited,
    logPath,
    lastWords: () => lastWordsIn(logPath, sizeBefore),
    boundLog() {
      if (maybeRotate(logPath)) sizeBefore = 0;
    },
  };
}

/** A node ends by itself before that. */
const STOP_MILLIS_MAX = 12_000;

/** Asks a node to stop, and insists after `patienceMillis`. */
export async function stopNodeProcess(node: NodeProcess, patienceMillis = STOP_MILLIS_MAX): Promise<void> {
  const { child } = node;
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMillis);
  await node.exited;
  clearTimeout(timer);
}

type Nodes = Pick<ClusterConfig, 'nodes' | 'tls'>;
type Tls = ClusterConfig['tls'];

const ANSWER_MILLIS_MAX = 1_000;

/** From now on this process speaks with the nodes of a directory, if their doors speak TLS, wherever they listen. */
export async function trustNodes(directory: string, tls: Tls): Promise<void> {
  if (tls?.doors === undefined) return;
  const ca = await readAuthorities(resolvePath(tls.ca, directory, NO_NODE), 'tls.ca');
  trustOnly({ ca: [...rootCertificates, ca], anyHost: true });
}

/** What the node at this URL says about the cluster; undefined if it says nothing. */
export async function reportFrom(url: string): Promise<ClusterReport | undefined> {
  try {
    const response = await askReport(url);
    const body: unknown = await response.json();
    return isClusterReport(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

async function askReport(url: string): Promise<Response> {
  const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX);
  return nodeFetch(new URL('/v1/cluster', url), { signal, headers: authorization() });
}

/** @throws ConfigError if this node is ready, and tells nobody without a token */
async function refuseIfClosed(node: NodeAddress, tls: Tls): Promise<void> {
  const response = await askReport(doorUrl(node, tls)).catch(() => undefined);
  if (response?.status !== 401 && response?.status !== 403) return;
  throw new ConfigError(
    TOKEN_VARIABLE,
    'must hold a token of role read or admin: the cluster tells nobody else how it is',
  );
}

/**
 * What some node of the cluster says about it; undefined if none answers. A node that was removed, or is refused, knows no more
 * who leads, and is not believed.
 */
export async function clusterReport({ nodes, tls }: Nodes): Promise<ClusterReport | undefined> {
  for (const node of nodes) {
    const report = await reportFrom(doorUrl(node, tls));
    if (report?.self.standing === 'member') return report;
  }
  return undefined;
}

/** What a node says of itself. */
export interface NodeState {
  readonly isReady: boolean;
  readonly text: string;
  /** It was removed from the cluster, or is refused by it, and this is why: it never will be ready. */
  readonly excluded?: string;
}

export async function stateOf(node: Pick<NodeAddress, 'http'>, tls?: Tls): Promise<NodeState> {
  try {
    const response = await nodeFetch(new URL('/readyz', doorUrl(node, tls)), {
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    });
    const isReady = response.ok;
    const readiness = (await response.json()) as Readiness;
    switch (readiness.status) {
      case 'starting':
        return {
          isReady,
          text: `starting, ${readiness.loaded} of ${readiness.of} groups loaded`,
        };
      case 'removed':
      case 'refused':
        return { isReady, text: readiness.status, excluded: readiness.reason };
      case 'draining':
        // It is up, and an operator wants it so.
        return { isReady: true, text: readiness.status };
      default:
        return { isReady, text: readiness.status };
    }
  } catch {
    return { isReady: false, text: 'no answer' };
  }
}

/** Somebody listens there, whatever it says. */
export async function isAnswering(node: Pick<NodeAddress, 'http'>, tls: Tls): Promise<boolean> {
  try {
    await nodeFetch(new URL('/healthz', doorUrl(node, tls)), {
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    });
    return true;
  } catch {
    return false;
  }
}

/** Who is told what while nodes start. */
export interface StartWatch {
  /** A line about what they are doing, if it takes long. */
  readonly say?: (line: string) => void;
  /** A node belongs to the cluster no more; nobody waits for it. */
  readonly excluded?: (id: number, reason: string) => void;
}

/**
 * Resolves when these nodes are ready and every partition has a leader, with that status. Rejects when none of the nodes
 * got any further for `patienceMillis`.
 */
export async function waitUntilReady(
  { nodes, tls }: Nodes,
  patienceMillis: number,
  { say = () => {}, excluded: onExcluded = () => {} }: StartWatch = {},
): Promise<ClusterReport> {
  const progress = new StartProgress(patienceMillis, say, performance.now());
  let waitedFor = nodes;
  for (;;) {
    const states = new Map(
      await Promise.all(waitedFor.map(async (node) => [node.id, await stateOf(node, tls)] as const)),
    );
    for (const [id, { excluded }] of states) if (excluded !== undefined) onExcluded(id, excluded);
    waitedFor = waitedFor.filter(({ id }) => states.get(id)?.excluded === undefined);
    const areReady = waitedFor.every(({ id }) => states.get(id)?.isReady === true);
    const status = areReady
      ? await clusterReport({ nodes: waitedFor, ...(tls !== undefined && { tls }) })
      : undefined;
    if (areReady && status === undefined && waitedFor[0] !== undefined)
      await refuseIfClosed(waitedFor[0], tls);
    const isUp = (id: number): boolean => status?.nodes.some((node) => node.id === id && node.up) === true;
    const isReady =
      status !== undefined &&
      waitedFor.every(({ id }) => isUp(id)) &&
      status.partitions.every((partition) => partition.leader !== 0);
    if (isReady) return status;
    const texts = new Map([...states].map(([id, { text }]) => [id, text]));
    if (!progress.look(texts, performance.now())) {
      throw new Error(
        `the cluster was not ready, and nothing moved for ${patienceMillis} ms: ${progress.describe()}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
