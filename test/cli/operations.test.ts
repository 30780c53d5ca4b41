/** `quorate status` and `quorate top` of a cluster in this process: in health, with a node down, and where nobody answers. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { showStatus } from '../../src/cli/status-command.ts';
import { showTop } from '../../src/cli/top-command.ts';
import { eventually, freePorts } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

const RULE = { id: 'default', limit: 3, windowMillis: 600_000, clock: 'cluster' } as const;
const PARTITIONS = 6;

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
  readonly exit: string;
  readonly state: string;
  readonly via: string;
  readonly nodes: readonly { readonly id: number; readonly state: string; readonly leads: number }[];
  readonly partitions: {
    readonly withReplicaDown: readonly number[];
    readonly withoutLeader: readonly number[];
  };
  readonly unreachable: readonly number[];
  readonly problems: readonly string[];
  readonly notes: readonly string[];
}

interface Sample {
  readonly nodes: readonly { readonly state: string }[];
  readonly perSecond: { readonly denied: number };
  readonly p99Millis: number | null;
  readonly top: readonly unknown[] | null;
}

/** Each node tells what it leads at its own time, so just after an election two may, or none. */
function ledBy({ nodes }: Status): number {
  return nodes.reduce((sum, { leads }) => sum + leads, 0);
}

async function status(via = urlOf(1), data?: string): Promise<Status> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const exit = await showStatus({ via, json: true, print, ...(data !== undefined && { data }) });
  return { exit, ...(JSON.parse(lines.join('\n')) as Omit<Status, 'exit'>) };
}

/** The reports of all nodes have come. */
async function statusWith(what: string, isMeant: (status: Status) => boolean): Promise<Status> {
  return eventually(what, async () => {
    const now = await status();
    return isMeant(now) ? now : undefined;
  });
}

describe('the status of a cluster', () => {
  it('is healthy when nothing is wrong', async () => {
    const found = await statusWith(
      'it is healthy',
      (now) => now.state === 'healthy' && ledBy(now) === PARTITIONS,
    );
    expect(found).toMatchObject({
      exit: 'healthy',
      via: urlOf(1),
      rulesVersion: 1,
      problems: [],
      notes: [],
      unreachable: [],
      partitions: { count: PARTITIONS, withoutLeader: [], withReplicaDown: [], notCaughtUp: [], moving: [] },
    });
    for (const node of found.nodes)
      expect(node).toMatchObject({
        state: 'ready',
        draining: false,
        version: 'unknown',
        incarnation: expect.stringMatching(/^.{8}$/) as string,
        clock: 'fit',
        diskFreeBytes: expect.any(Number) as number,
        databaseBytes: expect.any(Number) as number,
      });
  });

  it('fits on a screen', async () => {
    // Another node than the one that was asked before: it may hear of leaders a moment later.
    const lines = await eventually('node 2 says it is healthy, too', async () => {
      const shown: string[] = [];
      await showStatus({ via: urlOf(2), print: (line) => void shown.push(line) });
      return shown.at(-1) === 'healthy' ? shown : undefined;
    });
    expect(lines[0]).toContain('3 nodes, 6 partitions (6 with a leader, 6 in place), rules version 1');
    expect(lines.filter((line) => / {2}ready {2}/.test(line))).toHaveLength(3);
    expect(lines.length).toBeLessThan(20);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(160);
  });

  it('names a node that is down, and what lacks a copy; nobody needs to answer at --via', async () => {
    await cluster.stopNode(3);
    const found = await statusWith('node 3 alone is known to be down', ({ nodes, partitions }) => {
      const areAsMeant = nodes.every(({ id, state }) => state === (id === 3 ? 'down' : 'ready'));
      return areAsMeant && partitions.withoutLeader.length === 0;
    });
    expect(found).toMatchObject({ exit: 'degraded', state: 'degraded', unreachable: [3] });
    expect(found.partitions.withReplicaDown).toHaveLength(PARTITIONS);
    expect(found.problems.join('\n')).toMatch(/^node 3 is down .*ECONNREFUSED.*start it again/);
    const other = await eventually('node 1 tells in place of node 3', async () => {
      const now = await status(urlOf(3), cluster.directory);
      return now.via === urlOf(1) ? now : undefined;
    });
    expect(other.notes[0]).toMatch(/was asked first: ECONNREFUSED/);
    await cluster.startNode(3);
    await cluster.ready();
  });

  it('cannot be told where nobody answers', async () => {
    const [port = 0] = await freePorts(1);
    const empty = join(cluster.directory, 'none');
    await mkdir(empty);
    await writeFile(join(empty, 'cluster.json'), '{ broken');
    await expect(status(`http://127.0.0.1:${port}`, empty)).rejects.toMatchObject({
      outcome: 'unreachable',
      message: expect.stringMatching(/no node tells how the cluster is \(http:.*ECONNREFUSED/) as string,
    });
  });
});

describe('what a cluster does just now', () => {
  it('is the difference of two readings', async () => {
    let isAsking = true;
    const asking = (async () => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ userId: 'ada\u001B[2J' });
      // Whoever shares the machine may keep it from an answer.
      while (isAsking)
        await fetch(`${urlOf(1)}/v1/allow`, { method: 'POST', headers, body }).catch(() => undefined);
    })();
    try {
      const sample = await eventually('a sample of a node that is ready, and denies', async () => {
        const lines: string[] = [];
        const print = (line: string): void => void lines.push(line);
        await showTop({ via: urlOf(1), intervalMillis: 500, json: true, print });
        const taken = JSON.parse(lines.join('')) as Sample;
        const isTold = taken.p99Millis !== null && taken.top?.length === 1;
        return taken.nodes[0]?.state === 'ready' && taken.perSecond.denied > 0 && isTold ? taken : undefined;
      });
      expect(sample).toMatchObject({
        perSecond: { denied: expect.any(Number) as number },
        p50Millis: expect.any(Number) as number,
        p99Millis: expect.any(Number) as number,
        nodes: [{ id: 1, state: 'ready' }, { id: 2 }, { id: 3 }],
        top: [{ rule: 'default', key: 'ada\u001B[2J' }],
      });
      // On a busy machine nothing may be answered between the two readings, or late beyond all bounds.
      const shown = await eventually('a sample of answers that came', async () => {
        const lines: string[] = [];
        await showTop({
          via: urlOf(1),
          intervalMillis: 200,
          once: true,
          print: (line) => void lines.push(line),
        });
        return /^decisions: .*denied \d+\/s.*; HTTP p50 <= [\d.]+ ms/.test(lines[0] ?? '')
          ? lines
          : undefined;
      });
      // A key may hold what a terminal would obey.
      expect(shown.join('\n')).toContain('ada?[2J (default)');
    } finally {
      isAsking = false;
      await asking;
    }
  });
});
