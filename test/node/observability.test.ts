/**
 * Tests that the dashboard and the alert rules only use metrics that exist, and that every alert has a remedy.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { InProcessCluster } from '../cluster/in-process.ts';

const FOLDER = join(import.meta.dirname, '../../cluster/observability');
const RULE = { id: 'default', limit: 100, windowMillis: 600_000, clock: 'cluster' } as const;
/** Metrics that Prometheus itself adds for each target. */
const OF_PROMETHEUS = ['up'];
const KEYWORDS = new Set([
  'and',
  'or',
  'unless',
  'on',
  'ignoring',
  'group_left',
  'group_right',
  'bool',
  'offset',
]);

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** The names in an expression, without labels, numbers and functions. */
function metricsIn(expr: string): string[] {
  const plain = expr
    .replaceAll(/\{[^}]*\}/g, ' ')
    .replaceAll(/\[[^\]]*\]/g, ' ')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, ' ');
  const names = [...plain.matchAll(/[a-zA-Z_:][\w:]*(?!\w*\s*\()/g)].map(([name]) => name);
  const called = new Set([...plain.matchAll(/([a-zA-Z_:][\w:]*)\s*\(/g)].map(([, name]) => name));
  return names.filter((name) => !called.has(name) && !KEYWORDS.has(name));
}

/** Every series name that can occur in a text in the format of Prometheus. */
function namesReported(text: string): Set<string> {
  const names = new Set<string>();
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (type === 'histogram') for (const end of ['bucket', 'sum', 'count']) names.add(`${name}_${end}`);
  }
  return names;
}

let cluster: InProcessCluster;
let reported: Set<string>;
let alerts: readonly Alert[];
let panels: readonly Panel[];
beforeAll(async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], nodes: 1, partitions: 2, resp: true });
  await cluster.startAll();
  const response = await fetch(`http://127.0.0.1:${cluster.config.nodes[0]?.http.port ?? 0}/metrics`);
  reported = namesReported(await response.text());
  const rules = parse(await readFile(join(FOLDER, 'alerts.yaml'), 'utf8')) as {
    groups: { name: string; rules: Alert[] }[];
  };
  alerts = rules.groups.flatMap((group) => group.rules);
  const dashboard = JSON.parse(await readFile(join(FOLDER, 'dashboard.json'), 'utf8')) as { panels: Panel[] };
  ({ panels } = dashboard);
});
afterAll(async () => cluster.stop());

describe('names of metrics', () => {
  it.each([
    ['quorate_ready == 0 unless quorate_draining == 1', ['quorate_ready', 'quorate_draining']],
    ['sum by (instance, le) (rate(a_bucket{job="x"}[5m])) > 0.1', ['a_bucket']],
    ['histogram_quantile(0.99, sum(rate(b[$__rate_interval])))', ['b']],
    ['up{job="quorate"} == 0', ['up']],
  ])('are found in %s', (expr, names) => {
    expect(metricsIn(expr)).toEqual(names);
  });
});

describe('the alert rules', () => {
  it('use metrics that a node has', () => {
    expect(alerts.length).toBeGreaterThan(10);
    const asked = alerts.flatMap(({ alert, expr }) => metricsIn(expr).map((name) => [alert, name] as const));
    expect(new Set(asked.map(([alert]) => alert)).size).toBe(alerts.length);
    expect(asked.filter(([, name]) => !reported.has(name) && !OF_PROMETHEUS.includes(name))).toEqual([]);
  });

  it('have a unique name each, a description and a remedy', () => {
    for (const { alert, labels, annotations } of alerts) {
      expect(alert).toMatch(/^Quorate[A-Z]\w+$/);
      expect(['info', 'warning', 'critical']).toContain(labels.severity);
      expect(annotations.summary.length).toBeGreaterThan(20);
      expect(annotations.action.length).toBeGreaterThan(20);
    }
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
  });

  it.each([
    'quorate_limit_hit_ratio > 0.05',
    'quorate_request_p99_seconds > 0.005',
    'quorate_availability_ratio < 0.999',
    'quorate_wrong_denial_ratio_max > 0.001',
  ])('have the required figures: %s', (expr) => {
    expect(alerts.map((each) => each.expr)).toContain(expr);
  });
});

describe('the dashboard', () => {
  it('uses metrics that a node has, in every panel', () => {
    const shown = panels.filter(({ type }) => type !== 'row');
    expect(shown.length).toBeGreaterThan(20);
    for (const { title, targets = [] } of shown) {
      const names = targets.flatMap(({ expr }) => metricsIn(expr));
      expect([title, names.length >= targets.length && targets.length > 0]).toEqual([title, true]);
      expect([title, names.filter((name) => !reported.has(name) && !OF_PROMETHEUS.includes(name))]).toEqual([
        title,
        [],
      ]);
    }
  });
});
