/**
 * Restores a backup, taken during faults, into a cluster of its own without faults. Then requests users and keys that
 * had used up their limits, until each gets a grant again. Judges nothing. Its processes end with it.
 */
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type NodeProcess, startNodeProcess } from '../../cluster/processes.ts';
import { restore } from '../../src/cli/backup-command.ts';
import { readCluster } from '../../src/config/cluster-directory.ts';
import { freeBasePort } from '../cluster/harness.ts';
import { fieldsOf, numberOrNull } from './history.ts';
import { attempt, KEPT_MILLIS_MAX, nowNanos } from './http-attempt.ts';
import { MUTANT } from './machine.ts';
import type { SpentSubject } from './spent-subjects.ts';

/** One decision of the restored cluster. */
export interface RestoredAnswer {
  readonly invokeNanos: number;
  readonly completeNanos: number;
  readonly allowed: boolean;
  /** A denial with the reason `restored`. */
  readonly isRestored: boolean;
  /** The receipt: partition and group time. */
  readonly partition: number | null;
  readonly timeMillis: number | null;
}

export interface RestoredSubject extends SpentSubject {
  /** In the order of arrival. Each request was made after the previous answer. */
  readonly answers: readonly RestoredAnswer[];
}

export interface Restoration {
  /** The directory of the backup, in the folder of backups. */
  readonly directory: string;
  /** No process of the restored cluster ran before this moment. */
  readonly startedNanos: number;
  /** Why it could not be restored or asked. Null: it worked. */
  readonly error: string | null;
  readonly subjects: readonly RestoredSubject[];
}

export interface RestorationInit {
  /** The folder of backups, and the name of the backup. */
  readonly folder: string;
  readonly directory: string;
  /** The directory for the new cluster. It does not exist yet. */
  readonly data: string;
  readonly subjects: readonly SpentSubject[];
  readonly mutant: string | undefined;
}

const NODES = 3;
/** From the start of the processes: covers the start, elections, and the longest window. */
const ASKED_MILLIS_MAX = 60_000;
const PATIENCE_MILLIS = 5_000;
const AGAIN_MILLIS = 60;
/** After its first grant, each subject is requested more often than any limit allows. */
const MORE_THAN_LIMIT = 2;

/** Always resolves, and leaves no process behind. */
export async function restoreAndAsk(init: RestorationInit): Promise<Restoration> {
  const { folder, directory, data, mutant } = init;
  const processes: NodeProcess[] = [];
  let startedNanos = nowNanos();
  try {
    const basePort = await freeBasePort();
    const from = join(folder, directory);
    await restore({ from, data, nodes: NODES, basePort, json: true, print: () => undefined });
    const config = await readCluster(data);
    const nodes = config?.nodes ?? [];
    startedNanos = nowNanos();
    for (const { id } of nodes) processes.push(startNodeProcess(data, id, withMutant(mutant)));
    const ports = nodes.map(({ http }) => http.port);
    return { directory, startedNanos, error: null, subjects: await askAll(init.subjects, ports) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { directory, startedNanos, error: text, subjects: [] };
  } finally {
    for (const { child } of processes) child.kill('SIGKILL');
    await Promise.all(processes.map(async ({ exited }) => exited));
  }
}

function withMutant(mutant: string | undefined): Parameters<typeof startNodeProcess>[2] {
  if (mutant === undefined) return undefined;
  return ([executable = '', ...args]) => [
    'env',
    `QUORATE_TEST_MUTANT=${mutant}`,
    executable,
    '--import',
    pathToFileURL(MUTANT).href,
    ...args,
  ];
}

async function askAll(
  subjects: readonly SpentSubject[],
  ports: readonly number[],
): Promise<RestoredSubject[]> {
  const agent = new Agent({ keepAlive: true, timeout: KEPT_MILLIS_MAX });
  const endMillis = performance.now() + ASKED_MILLIS_MAX;
  try {
    return await Promise.all(
      subjects.map(async (subject, i) => {
        const answers = await answersFor(subject, { agent, ports, first: i, endMillis });
        return { ...subject, answers };
      }),
    );
  } finally {
    agent.destroy();
  }
}

interface Asking {
  readonly agent: Agent;
  readonly ports: readonly number[];
  /** The index of the port that is asked first. The others follow in turn. */
  readonly first: number;
  readonly endMillis: number;
}

/** Repeats a request until it is granted, and then at once more often than the limit allows. */
async function answersFor(
  { body, limits }: SpentSubject,
  { agent, ports, first, endMillis }: Asking,
): Promise<RestoredAnswer[]> {
  const answers: RestoredAnswer[] = [];
  const payload = Buffer.from(JSON.stringify(body));
  let left = Math.max(...limits.map(({ limit }) => limit)) + MORE_THAN_LIMIT;
  let isGranted = false;
  for (let i = first; left > 0 && performance.now() < endMillis; i += 1) {
    const port = ports[i % ports.length] ?? 0;
    const answer = await ask({ agent, port, payload });
    if (answer !== undefined) answers.push(answer);
    isGranted ||= answer?.allowed === true;
    if (isGranted) left -= 1;
    else await delay(AGAIN_MILLIS);
  }
  return answers;
}

/** Undefined: no node could decide it, which is normal while a cluster starts. */
async function ask(
  to: Pick<Parameters<typeof attempt>[0], 'agent' | 'port' | 'payload'>,
): Promise<RestoredAnswer | undefined> {
  const invokeNanos = nowNanos();
  const request = { ...to, method: 'POST', path: '/v1/allow', patienceMillis: PATIENCE_MILLIS } as const;
  const outcome = await attempt(request);
  if (outcome.kind !== 'answer' || (outcome.status !== 200 && outcome.status !== 429)) return undefined;
  const fields = fieldsOf(outcome.body);
  const decided = fieldsOf(fields['decided']);
  return {
    invokeNanos,
    completeNanos: nowNanos(),
    allowed: outcome.status === 200,
    isRestored: fields['reason'] === 'restored',
    partition: numberOrNull(decided['partition']),
    timeMillis: numberOrNull(decided['timeMillis']),
  };
}
