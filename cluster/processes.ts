/** Starts, watches and stops the node processes of a local cluster. Used by `npm start`, tests and benchmarks. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type ClusterReport, isClusterReport, type Readiness } from '../src/api/cluster-report.ts';
import type { NodeAddress } from '../src/api/node-address.ts';
import {
  listenerUrl,
  nodeFetch,
  readAuthorities,
  trustOnly,
  authorization,
  TOKEN_VARIABLE,
} from '../src/cli/node-fetch.ts';
import { NO_NODE } from '../raft/types.ts';
import { resolvePath } from '../src/tls/credentials.ts';
import { type ClusterConfig, ConfigError } from '../src/config/config.ts';
import { logPathOf, maybeRotate } from './node-log.ts';
import { StartProgress } from './start-progress.ts';

/** Finds the compiled command, both from dist/cluster (compiled) and from cluster (source). */
const here = dirname(fileURLToPath(import.meta.url));
const root = here.endsWith(join('dist', 'cluster')) ? join(here, '..', '..') : join(here, '..');
const CLI = join(root, 'dist', 'src', 'cli', 'main.js');

/**
 * Size of V8's young generation, in MiB. The garbage collector copies all objects that are in use, and under load a
 * request lives for a tenth of a second: with the default of 16 MiB half of the objects were still in use.
 */
const YOUNG_MIB = 32;

/** How a process ended. One of the two is null. */
export interface NodeExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running node process. */
export interface NodeProcess {
  readonly id: number;
  readonly child: ChildProcess;
  readonly exited: Promise<NodeExit>;
  readonly logPath: string;
  /** The error with which the node ended, from its log. Undefined: there is none. */
  readonly lastWords: () => string | undefined;
  /** Rotates the log if it is too long. See node-log.ts. */
  readonly boundLog: () => void;
}

/** A command prints such a line when it fails, and so does V8. */
const LAST_WORDS = /^(?:quorate: |FATAL ERROR: )(.*)$/gm;
const LAST_WORDS_BYTES_MAX = 16_384;

/** Finds the last error in a log, ignoring its first `sizeBefore` bytes. */
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

/** Changes the command line of a node, for example to run it under a limit. */
export type CommandWrapper = (command: readonly string[]) => readonly string[];

/**
 * Starts a node that logs to `logs/node-<id>.log` in the directory of the cluster. The node ends when this process
 * ends.
 */
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
    // Two threads of libuv's pool: one for LevelDB's synced write, of which there is one at a time, and one for file
    // access and name resolution. More threads only wake each other up. The token of the user is not passed on, because
    // a node does not need it.
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

/** A node that shuts down cleanly takes less time than this. */
const STOP_MILLIS_MAX = 12_000;

/** Stops a node with SIGTERM, and with SIGKILL after `patienceMillis`. */
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

/** Makes this process trust the nodes in a directory, if their listeners use TLS, at any address. */
export async function trustNodes(directory: string, tls: Tls): Promise<void> {
  if (tls?.listeners === undefined) return;
  const ca = await readAuthorities(resolvePath(tls.ca, directory, NO_NODE), 'tls.ca');
  trustOnly({ ca: [...rootCertificates, ca], anyHost: true });
}

/** The cluster report of the node at this URL. Undefined: it does not answer, or without a report. */
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

/** @throws ConfigError if the node is ready, but reports its state only to requests with a token */
async function refuseIfClosed(node: NodeAddress, tls: Tls): Promise<void> {
  const response = await askReport(listenerUrl(node, tls)).catch(() => undefined);
  if (response?.status !== 401 && response?.status !== 403) return;
  throw new ConfigError(
    TOKEN_VARIABLE,
    'must hold a token of role read or admin: the cluster reports its state only with such a token',
  );
}

/**
 * The report of the first node that answers as a member. Undefined: none does. A removed or refused node does not know
 * the current leaders, so its report is skipped.
 */
export async function clusterReport({ nodes, tls }: Nodes): Promise<ClusterReport | undefined> {
  for (const node of nodes) {
    const report = await reportFrom(listenerUrl(node, tls));
    if (report?.self.membership === 'member') return report;
  }
  return undefined;
}

/** The state that a node reports. */
export interface NodeState {
  readonly isReady: boolean;
  readonly text: string;
  /** Why the node will never be ready: it was removed from the cluster, or the cluster refuses it. */
  readonly excluded?: string;
}

/** Asks a node for its state. */
export async function stateOf(node: Pick<NodeAddress, 'http'>, tls?: Tls): Promise<NodeState> {
  try {
    const response = await nodeFetch(new URL('/readyz', listenerUrl(node, tls)), {
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    });
    const isReady = response.ok;
    const readiness = (await response.json()) as Readiness;
    switch (readiness.status) {
      case 'starting':
        return {
          isReady,
          text:
            readiness.loaded < readiness.of
              ? `starting, ${readiness.loaded} of ${readiness.of} groups loaded`
              : 'warming up, all groups loaded',
        };
      case 'removed':
      case 'refused':
        return { isReady, text: readiness.status, excluded: readiness.reason };
      case 'draining':
        // The node is up, and an operator drained it on purpose.
        return { isReady: true, text: readiness.status };
      default:
        return { isReady, text: readiness.status };
    }
  } catch {
    return { isReady: false, text: 'no answer' };
  }
}

/** Returns true if any program answers at the address. */
export async function isAnswering(node: Pick<NodeAddress, 'http'>, tls: Tls): Promise<boolean> {
  try {
    await nodeFetch(new URL('/healthz', listenerUrl(node, tls)), {
      signal: AbortSignal.timeout(ANSWER_MILLIS_MAX),
    });
    return true;
  } catch {
    return false;
  }
}

/** Callbacks while nodes start. */
export interface StartWatch {
  /** Called with a line of progress, if starting takes long. */
  readonly say?: (line: string) => void;
  /** Called for a node that does not belong to the cluster any more. It is not waited for. */
  readonly excluded?: (id: number, reason: string) => void;
}

/**
 * Resolves with the report when the nodes are ready and every partition has a leader. Rejects if no node makes progress
 * for `patienceMillis`.
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
    const texts = new Map([...states].map(([id, { text }]) => [id, text]));
    if (isReady) {
      progress.end(texts);
      return status;
    }
    if (!progress.record(texts, performance.now())) {
      throw new Error(
        `the cluster was not ready, and nothing moved for ${patienceMillis} ms: ${progress.describe()}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
