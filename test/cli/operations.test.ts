/** Tests `quorate status` and `quorate top`: with a healthy cluster, with a node down, and with no answer at all. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { atNode, clusterOf } from '../../src/cli/asked-cluster.ts';
import { showStatus } from '../../src/cli/status-command.ts';
import { showTop } from '../../src/cli/top-command.ts';
import { freePorts, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { inTime } from './command.ts';

const RULE = { id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' } as const;
const PARTITIONS = 6;
/**
 * Time for repeated attempts: nodes exchange reports only now and then, and a command waits two seconds for an
 * answer.
 */
const PATIENCE = { timeout: WAIT_MILLIS_MAX };

let cluster: InProcessCluster;
beforeAll(async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS });
  await cluster.startAll();
});
afterAll(async () => cluster.stop());

function urlOf(id: number): string {
  return `http://127.0.0.1:${cluster.config.nodes.find((node) => node.id === id)?.http.port ?? 0}`;
}

interface Status {
  readonly asked: string;
  readonly nodes: readonly { readonly leads: number }[];
  readonly problems: readonly string[];
  readonly notes: readonly string[];
}

interface Sample {
  readonly perSecond: { readonly denied: number };
}

async function status(named = atNode(urlOf(1))): Promise<Status & { exit: string }> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const exit = await showStatus({ cluster: named, json: true, print });
  return { exit, ...(JSON.parse(lines.join('\n')) as Status) };
}

/**
 * Waits until the sums fit. Nodes report what they lead at different times, so after an election two may report a
 * partition, or none.
 */
async function statusWithSums(): Promise<object> {
  const found = await status();
  const led = found.nodes.reduce((sum, { leads }) => sum + leads, 0);
  return { ...found, led, problem: found.problems.join('\n') };
}

describe('the status of a cluster', () => {
  it('is healthy when nothing is wrong', async () => {
    const node = {
      state: 'ready',
      draining: false,
      version: 'unknown',
      incarnation: expect.stringMatching(/^.{8}$/) as string,
      clock: 'fit',
      diskFreeBytes: expect.any(Number) as number,
      databaseBytes: expect.any(Number) as number,
    };
    await expect.poll(statusWithSums, PATIENCE).toMatchObject({
      exit: 'healthy',
      state: 'healthy',
      led: PARTITIONS,
      asked: urlOf(1),
      rulesVersion: 1,
      problems: [],
      notes: [],
      unreachable: [],
      partitions: { count: PARTITIONS, withoutLeader: [], withReplicaDown: [], notCaughtUp: [], moving: [] },
      nodes: [node, node, node],
    });
  });

  it('fits on a screen', async () => {
    let lines: string[] = [];
    // This node may learn of new leaders a moment later than the first.
    const peek = async (): Promise<string[]> => {
      lines = [];
      await showStatus({ cluster: atNode(urlOf(2)), print: (line) => void lines.push(line) });
      return lines.filter((line) => /^(note|problem): /.test(line)).concat(lines.at(-1) ?? '');
    };
    await expect.poll(peek, PATIENCE).toEqual(['healthy']);
    expect(lines[0]).toContain('3 nodes, 6 partitions (6 with a leader, 6 in place), rules version 1');
    expect(lines.filter((line) => / {2}ready {2}/.test(line))).toHaveLength(3);
    expect(lines.length).toBeLessThan(20);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(160);
  });

  it('names a node that is down and the partitions that lack a copy; not every node of the directory needs to answer', async () => {
    await cluster.stopNode(3);
    await expect.poll(statusWithSums, PATIENCE).toMatchObject({
      exit: 'degraded',
      state: 'degraded',
      unreachable: [3],
      nodes: [
        { id: 1, state: 'ready' },
        { id: 2, state: 'ready' },
        { id: 3, state: 'down' },
      ],
      partitions: { withoutLeader: [], withReplicaDown: { length: PARTITIONS } },
      problem: expect.stringMatching(/^node 3 is down .*ECONNREFUSED.*start it again/) as string,
    });
    const instead = async (): Promise<readonly [string, string | undefined]> => {
      const { urls, ...named } = await clusterOf({ data: cluster.directory });
      // The dead node is asked first.
      const { asked, notes } = await status({ ...named, urls: [...urls].reverse() });
      return [asked, notes[0]];
    };
    await expect
      .poll(instead, PATIENCE)
      .toEqual([urlOf(2), expect.stringMatching(/was asked first, without success: ECONNREFUSED/)]);
    await cluster.startNode(3);
    await cluster.ready();
  });

  it('is unknown if no node answers', async () => {
    const [port = 0] = await freePorts(1);
    await expect(inTime(() => status(atNode(`http://127.0.0.1:${port}`)))).rejects.toMatchObject({
      outcome: 'unreachable',
      message: expect.stringMatching(
        /no node reports the state of the cluster \(http:.*ECONNREFUSED/,
      ) as string,
    });
  });
});

describe('the current load of a cluster', () => {
  it('is the difference of two readings', async () => {
    let isAsking = true;
    const asking = (async () => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ userId: 'ada\u001B[2J' });
      // Other work on the machine may delay an answer.
      while (isAsking)
        await fetch(`${urlOf(1)}/v1/allow`, { method: 'POST', headers, body }).catch(() => undefined);
    })();
    try {
      const sample = async (): Promise<object> => {
        const lines: string[] = [];
        const print = (line: string): void => void lines.push(line);
        await showTop({ cluster: atNode(urlOf(1)), intervalMillis: 500, json: true, print });
        const taken = JSON.parse(lines.join('')) as Sample;
        return { ...taken, isDenying: taken.perSecond.denied > 0 };
      };
      await expect.poll(sample, PATIENCE).toMatchObject({
        perSecond: { denied: expect.any(Number) as number },
        isDenying: true,
        p50Millis: expect.any(Number) as number,
        p99Millis: expect.any(Number) as number,
        nodes: [{ id: 1, state: 'ready' }, { id: 2 }, { id: 3 }],
        top: [{ rule: 'default', key: 'user=ada\u001B[2J' }],
      });
      // On a busy machine there may be no answer between the two readings, or a very late one.
      const shown = async (): Promise<string> => {
        const lines: string[] = [];
        const print = (line: string): void => void lines.push(line);
        await showTop({ cluster: atNode(urlOf(1)), intervalMillis: 200, once: true, print });
        return lines.join('\n');
      };
      // A key may contain terminal control sequences.
      await expect
        .poll(shown, PATIENCE)
        .toMatch(/^decisions: .*denied \d+\/s.*; HTTP p50 <= [\d.]+ ms[^]*ada\?\[2J \(default\)/);
    } finally {
      isAsking = false;
      await asking;
    }
  });
});
