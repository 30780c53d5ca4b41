/** Tests that three real nodes add up the answers of all listeners, and name a node that is down. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UsageReport } from '../../src/api/usage.ts';
import { eventually, TestCluster } from './harness.ts';

const LIMIT = 5;

let cluster: TestCluster;

beforeAll(async () => {
  cluster = await TestCluster.start({
    partitions: 4,
    rules: [
      { id: 'default', limit: LIMIT, windowMillis: 600_000, clock: 'cluster' },
      { id: 'other', limit: 1, windowMillis: 600_000, clock: 'cluster' },
    ],
  });
  // Requests that no node decides count under none of these rules.
  for (const node of cluster.ids) await metricsOf(node);
});
afterAll(async () => {
  await cluster.stop();
});

/** Reads the metrics after the node knows the rules in force. */
async function metricsOf(node: number): Promise<string> {
  return eventually(`node ${node} counts under the rules in force`, async () => {
    const page = await fetch(`http://127.0.0.1:${cluster.port(node)}/metrics`).then((r) => r.text());
    return page.includes('quorate_rule_limit{') ? page : undefined;
  });
}

/** Repeats the request while a running node is silent: a busy one may answer late. */
async function usage(node: number, query: string, silent: readonly number[] = []): Promise<UsageReport> {
  return eventually(`silent are ${silent.join() || 'none'}`, async () => {
    const response = await fetch(`http://127.0.0.1:${cluster.port(node)}/v1/usage${query}`);
    expect(response.status).toBe(200);
    const report = (await response.json()) as UsageReport;
    return report.silent.join() === silent.join() ? report : undefined;
  });
}

/** Answers that clients really got. A late answer on a busy machine is then no failure. */
const reported = { allowed: 0, denied: 0, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 };

async function ask(node: number, userId: string, rule = 'default'): Promise<void> {
  const { status } = await cluster.allow(node, { userId, ...(rule !== 'default' && { rule }) });
  if (rule !== 'default') return;
  if (status === 200) reported.allowed += 1;
  else if (status === 429) reported.denied += 1;
  else reported.unavailable += 1;
}

function allowed({ rules }: UsageReport): number {
  return rules.reduce((sum, rule) => sum + rule.allowed, 0);
}

describe('three nodes', () => {
  it('all report the same figures: the sums of what clients were answered', async () => {
    for (let i = 0; i < 12; i += 1) await ask((i % 3) + 1, 'ada');
    await eventually('a user is denied', async () => {
      if (reported.denied === 0) await ask(1, 'ada');
      return reported.denied > 0 ? true : undefined;
    });
    await ask(1, 'bob');
    await ask(2, 'bob', 'other');
    await ask(2, 'bob', '100/60000ms');
    for (const node of [1, 2, 3]) {
      const report = await usage(node, '?minutes=10');
      expect(report).toMatchObject({ minutes: 10, nodes: [1, 2, 3], silent: [] });
      expect(report.top).toBeUndefined();
      expect(report.rules).toContainEqual({ rule: 'default', ...reported });
      expect(report.rules.map(({ rule }) => rule)).toEqual(['LIMIT/WINDOWms', 'default', 'other']);
      expect(report.history.allowed).toHaveLength(10);
    }
  });

  it('name the users that were granted and denied most, under the rule asked for', async () => {
    const { rules, top } = await usage(3, '?minutes=10&rule=default&top=1');
    expect(rules.map(({ rule }) => rule)).toEqual(['default']);
    expect(top?.denied).toEqual([{ rule: 'default', key: 'user=ada', count: reported.denied, error: 0 }]);
    expect(top?.allowed).toMatchObject([{ rule: 'default', key: 'user=ada', error: 0 }]);
  });

  it('export the figures to Prometheus without names of users', async () => {
    const text = await metricsOf(1);
    expect(text).toContain(`quorate_rule_limit{rule="default"} ${LIMIT}\n`);
    expect(text).toContain('quorate_rule_window_seconds{rule="other"} 600\n');
    expect(text).toMatch(/quorate_decisions_total\{rule="default",outcome="allowed"\} [1-5]\n/);
    for (const name of [
      'limit_hit_ratio',
      'request_p99_seconds',
      'availability_ratio',
      'wrong_denial_ratio_max',
    ])
      expect(text).toMatch(new RegExp(`^quorate_${name} [0-9.e-]+$`, 'm'));
    expect(text).not.toMatch(/ada|bob/);
  });

  it('name the one that is down, and report what the others counted', async () => {
    const before = await usage(1, '?minutes=10');
    await cluster.kill(3);
    const after = await usage(1, '?minutes=10', [3]);
    expect(after).toMatchObject({ nodes: [1, 2], silent: [3] });
    expect(allowed(after)).toBeGreaterThan(0);
    expect(allowed(after)).toBeLessThanOrEqual(allowed(before));
  });
});
