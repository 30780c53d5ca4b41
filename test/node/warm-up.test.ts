/** Tests the warm-up of a process: its amount, its time limit, and that the real node is not affected. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { warmUp, warmUpOnce } from '../../src/node/warm-up.ts';
import { eventually } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';

interface Line {
  readonly level: 'info' | 'warn';
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Warms up with a clock that advances by this many milliseconds with every reading. */
async function lineOf(stepMillis: number, brokenAfter = Infinity): Promise<Line> {
  const lines: Line[] = [];
  let reads = 0;
  await warmUp({
    logger: {
      info: (fields: Line['fields']) => void lines.push({ level: 'info', fields }),
      warn: (fields: Line['fields']) => void lines.push({ level: 'warn', fields }),
    },
    monotonicMillis() {
      reads += 1;
      if (reads > brokenAfter) throw new Error('the clock is broken');
      return reads * stepMillis;
    },
  });
  expect(lines).toHaveLength(1);
  return lines[0]!;
}

function sockets(): string[] {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP'));
}

async function textAt(port: number, path: string): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}${path}`)).text();
}

describe('a process that warms up', () => {
  it('decides some thousands of requests, grants and denials', async () => {
    const { level, fields } = await lineOf(0.001);
    expect(level).toBe('info');
    const { granted, denied, ...others } = fields as Record<string, number>;
    expect(granted).toBeGreaterThan(1_000);
    expect(denied).toBeGreaterThan(500);
    expect(others).toMatchObject({ others: 0 });
  });

  it('ends when its time is over, before its nodes have a leader or while it sends requests', async () => {
    for (const stepMillis of [200, 20, 1, 0.3]) {
      const { level, fields } = await lineOf(stepMillis);
      expect(level).toBe('info');
      expect(fields['millis']).toBeLessThan(3_000 + 12 * stepMillis);
    }
  });

  it('never fails: it logs errors', async () => {
    for (const brokenAfter of [0, 3, 100, 3_000]) {
      const { level, fields } = await lineOf(0.001, brokenAfter);
      expect([level, String(fields['err'])]).toEqual(['warn', 'Error: the clock is broken']);
    }
  });

  it('leaves no socket open, also when it ended early', async () => {
    const before = sockets();
    await lineOf(0.001);
    await lineOf(1);
    await vi.waitFor(() => expect(sockets()).toEqual(before));
  });

  it('warms up once, for all its nodes', () => {
    const init = { logger: { info: () => undefined, warn: () => undefined }, monotonicMillis: () => 0 };
    expect(warmUpOnce(init)).toBe(warmUpOnce(init));
  });
});

describe('a node whose process warms up', () => {
  let cluster: InProcessCluster;
  beforeAll(async () => {
    const rules = [{ id: 'default', limit: 10, windowMillis: 60_000, clock: 'cluster' } as const];
    cluster = await InProcessCluster.create({ rules, nodes: 1, partitions: 2 });
    await cluster.startAll();
  });
  afterAll(async () => cluster.stop());

  it('has no trace of the warm-up in its logs, its usage and its metrics', async () => {
    const port = cluster.config.nodes[0]?.http.port ?? 0;
    const seen = async (): Promise<unknown> => {
      const { core } = cluster.node(1);
      const counted = (await textAt(port, '/metrics'))
        .split('\n')
        .filter((line) => /^quorate_\w*total\b/.test(line));
      return {
        applied: [0, 1, 2].map((group) => core.raft.status(group)?.applied),
        waiting: [...core.partitions.values()].map(({ waitingCount }) => waitingCount),
        usage: await textAt(port, '/v1/usage'),
        counted: counted.filter((line) => /answer|decision|grant|denied|entr/.test(line)),
      };
    };
    // Each leader still applies its first entries.
    await eventually('all logs are applied', () => {
      const { raft } = cluster.node(1).core;
      const applied = [0, 1, 2].map((group) => raft.status(group)?.applied ?? 0);
      return applied.every((index) => index >= 2) ? true : undefined;
    });
    const before = await seen();
    expect(before).toMatchObject({ counted: expect.arrayContaining([expect.any(String)]) });
    await lineOf(0.001);
    expect(await seen()).toEqual(before);
  });
});
