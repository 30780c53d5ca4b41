import { reportOf } from '../../src/node/cluster-view.ts';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DurableGroup } from '../../storage/memory-store.ts';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { allowAt, eventually, temporaryDirectory } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { budgetsOf } from './checkers/budgets.ts';
import { checkLogAgreement } from './checkers/log-agreement.ts';
import { Findings } from './checkers/result.ts';
import { compareGroup } from './compare-stores.ts';
import { HistoryWriter } from './history-file.ts';
import { type Operation, operationOf } from './history.ts';
import { type PartitionLog, readLogs } from './log-entries.ts';
import { encodeBand } from './nemesis-log.ts';
import {
  COMMAND_FILE,
  encodeExit,
  EXITS_FILE,
  HISTORY_FILE,
  judgeInto,
  LOGS_FOLDER,
  NEMESIS_FILE,
  readRun,
  settingsOf,
} from './run-folder.ts';
import { openStoppedNodes, type Replicas } from './stopped-nodes.ts';
import { verdictLines } from './verdict.ts';

/** Few enough per window that some requests are denied even on a slow machine. */
const RULE = { id: 'twenty', limit: 20, windowMillis: 60_000, clock: 'request' } as const;
/** Long timeouts, so that nothing is lost only because the machine is busy. */
const PATIENT = { heartbeatMillis: 500, electionMillis: 3_000, requestDeadlineMillis: 20_000 };
/** Two elections, and the deadline of a request. */
const RECOVERY_MILLIS_MAX = 4 * PATIENT.electionMillis + PATIENT.requestDeadlineMillis;
const CLIENTS = 4;
const REQUESTS = 60;
const NO_REQUEST_TWICE = { requestIdHorizonMillis: 120_000, replicas: 3 };

const nanos = (): number => Number(process.hrtime.bigint());

/** Sends requests one after the other, after any answer. Repeats each request whose answer is lost. */
async function client(
  cluster: InProcessCluster,
  process: number,
  record: (op: Operation) => void,
): Promise<void> {
  for (let i = 0; i < REQUESTS; i += 1) {
    const node = cluster.running[(process + i) % cluster.running.length] ?? 1;
    const port = cluster.config.nodes.find(({ id }) => id === node)?.http.port ?? 0;
    const requestId = `${process}-${i}`;
    // Requests after the restart are for other users, so that some of them fit.
    const user = `${i < REQUESTS / 2 ? 'user' : 'later'}-${(process + i) % 3}`;
    const question = {
      process,
      user,
      rule: RULE.id,
      node,
      invokeNanos: nanos(),
      limit: RULE.limit,
      windowMillis: RULE.windowMillis,
      cost: 1,
      timestampMillis: null,
      requestId,
    };
    try {
      const { status, body } = await allowAt(port, { userId: user, requestId });
      record(operationOf(question, nanos(), { kind: 'answer', status, body }));
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      record(operationOf(question, nanos(), { kind: 'broken', code, sent: code !== 'ECONNREFUSED' }));
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function disagreements(history: readonly Operation[], logs: readonly PartitionLog[]): string {
  return checkLogAgreement(budgetsOf(history), logs, NO_REQUEST_TWICE).result.findings.join('\n');
}

/** The same log with another fifth entry. */
const withFifth = (stored: DurableGroup, change: object): DurableGroup => ({
  ...stored,
  entries: stored.entries.map((entry, i) => (i === 4 ? { ...entry, ...change } : entry)),
});

describe('a run of a real cluster', () => {
  let folder: string;
  let cluster: InProcessCluster;
  const operations: Operation[] = [];

  beforeAll(async () => {
    folder = await temporaryDirectory();
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 3, timing: PATIENT });
    await cluster.startAll();
    const clients = Array.from({ length: CLIENTS }, async (_, i) =>
      client(cluster, i, (op) => operations.push(op)),
    );
    await eventually('the clients have sent enough requests', () =>
      operations.length > 60 ? true : undefined,
    );
    const startNanos = nanos();
    await cluster.stopNode(1);
    await cluster.startNode(1);
    const endNanos = nanos();
    await Promise.all(clients);
    await cluster.ready();
    await eventually('the last entries are everywhere', () => {
      const applied = cluster.running.map((id) =>
        reportOf(cluster.node(id).core, { nodeId: id, pid: 0 })
          .partitions.map((each) => `${each.partition}: ${each.applied}`)
          .sort(),
      );
      return applied.every((each) => String(each) === String(applied[0])) ? true : undefined;
    });
    for (const id of cluster.running) await cluster.stopNode(id);

    const writer = new HistoryWriter(join(folder, HISTORY_FILE));
    for (const operation of operations) writer.append(operation);
    writer.close();
    const band = { kind: 'restart', nodes: [1], startNanos, endNanos };
    await writeFile(join(folder, NEMESIS_FILE), `${encodeBand(band)}\n`);
    const exit = { node: 1, code: 0, signal: null, atNanos: startNanos + 1 };
    await writeFile(join(folder, EXITS_FILE), `${encodeExit(exit)}\n`);
    await writeFile(join(folder, COMMAND_FILE), 'npm run jepsen -- --seed 1\n');
    await mkdir(join(folder, LOGS_FOLDER));
    await writeFile(join(folder, LOGS_FOLDER, 'node-1.log'), '{"level":30,"msg":"node is up"}\n');
  });
  afterAll(async () => {
    await cluster.stop();
    await rm(folder, { recursive: true });
  });

  async function withStoppedNodes<T>(
    body: (logs: PartitionLog[], load: (partition: number) => Promise<Replicas>) => Promise<T>,
  ): Promise<T> {
    const nodes = await openStoppedNodes(cluster.directory);
    try {
      return await body(await readLogs(nodes), async (partition) => nodes.load(groupOfPartition(partition)));
    } finally {
      await nodes.close();
    }
  }

  it('is judged completely: verdict and page', async () => {
    const run = await readRun(folder, { clusterDirectory: cluster.directory });
    const verdict = await judgeInto(
      folder,
      run,
      await settingsOf(run, { recoveryMillisMax: RECOVERY_MILLIS_MAX }),
    );
    expect(verdictLines(verdict)[0]).toBe(
      `ok: ${operations.length} total, ${verdict.operations.granted} granted, ${verdict.operations.denied} denied, ` +
        `${verdict.operations.failed} failed, ${verdict.operations.unknown} unknown`,
    );
    const others = verdict.checks.filter(({ status }) => status !== 'ok');
    // There were no described requests and no backups.
    const joint = ['joint-limits', 'joint-receipts', 'joint-answers', 'joint-denials'];
    const backups = ['backups', 'backups-taken', 'restored'];
    expect(others.map(({ name, status }) => `${name} ${status}`)).toEqual(
      [...joint, ...backups].map((name) => `${name} skipped`),
    );
    const countsOf = (name: string) => verdict.checks.find((check) => check.name === name)?.counts;
    expect(countsOf('stores')).toMatchObject({ groups: 4, replicas: 12, statesCompared: 12 });
    expect(countsOf('log-agreement')).toMatchObject({ grantsFound: verdict.operations.granted });
    expect(countsOf('certificate')?.['receipts']).toBeGreaterThan(100);

    expect(JSON.parse(await readFile(join(folder, 'verdict.json'), 'utf8'))).toMatchObject({ verdict: 'ok' });
    const page = await readFile(join(folder, 'report.html'), 'utf8');
    for (const part of ['Operations', 'Latency', 'Rate', 'Unavailability', 'restart 1', 'log-agreement']) {
      expect(page).toContain(part);
    }
    expect(page).toContain('Again: <code>npm run jepsen -- --seed 1</code>');
    expect(page).toContain('unknown: no answer that decides it');
    // Self-contained: the page loads nothing.
    expect(page).not.toMatch(/(src|href)=|url\(|@import|NaN|undefined/);
  });

  it('finds the outcome of requests without an answer in the logs', async () => {
    // The same history without every third answer.
    const lost = operations.map((op, i): Operation =>
      i % 3 === 0 && op.class === 'ok'
        ? {
            ...op,
            class: 'info',
            allowed: null,
            status: 0,
            group: null,
            index: null,
            position: null,
            timeMillis: null,
          }
        : op,
    );
    await withStoppedNodes(async (logs) => {
      const { result, fates } = checkLogAgreement(budgetsOf(lost), logs, NO_REQUEST_TWICE);
      expect(result).toMatchObject({ status: 'ok', note: 'all logs were there from their first entry' });
      for (const [i, op] of operations.entries()) {
        const fate = fates.get(lost[i] ?? op);
        if (fate === undefined || op.class === 'info') continue;
        const { group, index, position, timeMillis } = op;
        expect(fate).toEqual(
          op.allowed === true
            ? { kind: 'granted', at: [{ group, index, position, timeMillis }] }
            : { kind: 'uncharged' },
        );
      }
      expect(fates.size).toBeGreaterThan(20);
    });
  });

  it('is a violation if an acknowledged grant is missing, is on too few nodes, or was reported as not proposed', async () => {
    await withStoppedNodes(async (logs) => {
      const granted = operations.find(({ allowed }) => allowed === true);
      const isIt = ({ requestId }: { requestId: string | null }): boolean => requestId === granted?.requestId;

      const without = logs.map((log) => ({
        ...log,
        requests: log.requests.filter((request) => !isIt(request)),
      }));
      expect(disagreements(operations, without)).toMatch(/^acknowledged and not in the log/);

      const thin = logs.map((log) => ({ ...log, heldThrough: [log.lastIndex, 0, 0] }));
      expect(disagreements(operations, thin)).toContain('only 1 of 3 nodes have it');

      const failed = operations.map((op): Operation =>
        isIt(op) ? { ...op, class: 'fail', allowed: null } : op,
      );
      expect(disagreements(failed, logs)).toMatch(/^reported as not proposed, but in the log/);

      const twice = logs.map((log) => {
        const again = log.requests.filter(isIt).map((request) => {
          const decision = request.decision && { ...request.decision, index: log.lastIndex };
          return { ...request, index: log.lastIndex, decision };
        });
        return { ...log, requests: [...log.requests, ...again] };
      });
      expect(disagreements(operations, twice)).toContain('the log charges');

      // Without the request at all, with it but without an id, or with it only once.
      const unasked = operations.filter((op) => !isIt(op));
      expect(disagreements(unasked, logs)).toMatch(/the log charges '.*' at \d+, and no attempt explains it/);
      const anonymous = (op: Operation): Operation => (isIt(op) ? { ...op, requestId: null } : op);
      const withoutId = logs.map((log) => ({
        ...log,
        requests: log.requests.map((request) => (isIt(request) ? { ...request, requestId: null } : request)),
      }));
      expect(disagreements(operations.map(anonymous), withoutId)).toBe('');
      expect(disagreements(unasked, withoutId)).toContain('a request without an id');
      const copied = withoutId.map((log) => ({
        ...log,
        requests: log.requests.flatMap((request) =>
          request.decision?.index === request.index && request.requestId === null
            ? [request, request]
            : [request],
        ),
      }));
      expect(disagreements(operations.map(anonymous), copied)).toContain('a request without an id');

      const short = logs.map((log) => ({ ...log, lastIndex: 1, requests: [] }));
      const denials = operations.filter(({ allowed }) => allowed === false);
      expect(disagreements(denials, short)).toContain('read at an index no log has');
    });
  });

  it('has equal databases, and any difference in their committed part is found', async () => {
    await withStoppedNodes(async (_logs, load) => {
      const replicas = await load(0);
      const findingsOf = (change: (stored: DurableGroup) => DurableGroup): string[] => {
        const findings = new Findings('stores');
        const changed = new Map(
          [...replicas].map(([node, stored]) => [node, node === 2 ? change(stored) : stored]),
        );
        compareGroup(groupOfPartition(0), changed, 3, findings);
        return [...findings.result().findings];
      };
      expect(findingsOf((stored) => stored)).toEqual([]);

      const different = findingsOf((stored) => withFifth(stored, { timeMillis: 1 }));
      expect(different.join('\n')).toMatch(/has another entry 5, which it regards as committed/);
      expect(different.join('\n')).toMatch(/has another entry 5 of term \d/);
      expect(findingsOf((stored) => withFifth(stored, { term: 0 }))).toHaveLength(1);

      // A node that lags behind is no violation. One whose commit index is beyond all logs is.
      expect(
        findingsOf(({ hardState, entries, ...rest }) => ({
          ...rest,
          hardState: { ...hardState, commit: 3 },
          entries: entries.slice(0, 3),
        })),
      ).toEqual([]);
      const beyond = findingsOf((stored) => ({
        ...stored,
        hardState: { ...stored.hardState, commit: 1_000_000 },
      }));
      expect(beyond).toEqual([expect.stringContaining('no log reaches 1000000')]);
    });
  });
});
