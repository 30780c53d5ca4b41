/** Tests that the Grafana and Prometheus files have units, thresholds and links to the documents. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../cli/command.ts';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly fieldConfig?: {
    readonly defaults: {
      readonly unit?: string;
      readonly thresholds?: { readonly steps: readonly { readonly value: number | null }[] };
      readonly custom?: { readonly thresholdsStyle?: { readonly mode: string } };
    };
  };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook_url?: string };
}

async function textOf(...path: readonly string[]): Promise<string> {
  return readFile(join(ROOT, 'cluster', ...path), 'utf8');
}

const dashboard = JSON.parse(await textOf('observability', 'dashboard.json')) as {
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string; readonly multi?: boolean }[];
  };
};
const shown = dashboard.panels.filter(({ type }) => type !== 'row');
const rules = parse(await textOf('observability', 'alerts.yaml')) as {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
};
const alerts = rules.groups.flatMap((group) => group.rules);
const RUNBOOK = 'docs/operate/runbook.md';
const runbook = await readFile(join(ROOT, RUNBOOK), 'utf8');

/** Allowed units of a panel, by the metric names in its expression. */
function unitsOf(expr: string): readonly string[] {
  const isRate = /\brate\(/.test(expr) && !expr.includes('histogram_quantile');
  const name = /[a-z_]+(?=\{)/.exec(expr)?.[0] ?? '';
  if (/_bytes/.test(name)) return isRate ? ['Bps'] : ['bytes'];
  if (/_ratio/.test(name)) return ['percentunit'];
  if (name.endsWith('_seconds_total')) return ['percentunit'];
  if (/_seconds(?:_bucket)?$/.test(name)) return ['s'];
  if (name.endsWith('_ppm')) return ['ppm'];
  if (/_(?:ready|draining|unfit)$/.test(name)) return ['bool_yes_no'];
  return isRate ? ['reqps', 'cps'] : ['short'];
}

/** Anchor of a Markdown heading on GitHub and GitLab. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

describe('units', () => {
  it.each([
    ['histogram_quantile(0.99, sum by (le) (rate(a_seconds_bucket{job="x"}[5m])))', 's'],
    ['sum by (instance) (rate(a_snapshot_bytes_total{job="x"}[5m]))', 'Bps'],
    ['sum by (instance) (rate(a_snapshot_seconds_count{job="x"}[5m]))', 'cps'],
    ['rate(process_cpu_seconds_total{job="x"}[5m])', 'percentunit'],
    ['a_state_bytes_max{job="x"}', 'bytes'],
    ['count(up{job="x"})', 'short'],
  ])('of %s', (expr, unit) => {
    expect(unitsOf(expr)).toContain(unit);
  });
});

describe('the dashboard', () => {
  it('has panels with unique names, and no two at one place', () => {
    expect(shown.length).toBeGreaterThan(30);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(new Set(shown.map(({ title }) => title)).size).toBe(shown.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  it('lets the operator select instances, and every expression uses the selection', () => {
    const variable = dashboard.templating.list.find(({ name }) => name === 'instance');
    expect(variable).toMatchObject({ query: 'label_values(up{job="$job"}, instance)', multi: true });
    const all = shown.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    const selectors = all.flatMap((expr) => [...expr.matchAll(/\{[^}]*\}/g)].map(([selector]) => selector));
    expect(new Set(selectors)).toEqual(new Set(['{job="$job", instance=~"$instance"}']));
    expect(all.filter((expr) => !expr.includes('{job='))).toEqual([]);
  });

  it.each(shown)('explains $title, in one unit, and marks from which value on it is bad', (panel) => {
    const { description = '', type, fieldConfig, targets = [] } = panel;
    const { unit, thresholds, custom } = fieldConfig?.defaults ?? {};
    expect(description).toMatch(/^[A-Z].{40,}\.$/s);
    expect(targets.length).toBeGreaterThan(0);
    expect(targets.map(({ refId }) => refId)).toEqual(['A', 'B', 'C'].slice(0, targets.length));
    expect(targets.filter(({ expr }) => !unitsOf(expr).includes(unit ?? ''))).toEqual([]);
    const [base, ...steps] = thresholds?.steps.map(({ value }) => value) ?? [];
    expect([base, steps.length > 0]).toEqual([null, true]);
    expect(steps).toEqual([...steps].sort((a, b) => Number(a) - Number(b)));
    // A line in a chart; a stat has the colour.
    expect(custom?.thresholdsStyle?.mode).toBe(type === 'timeseries' ? 'dashed' : undefined);
  });

  it('draws the thresholds of the alert rules', () => {
    const simple = alerts.flatMap(({ alert, expr }) => {
      const [, metric, bound] = /^(\w+) [<>] (0?\.?\d+)$/.exec(expr) ?? [];
      return metric === undefined || bound === '0' ? [] : [{ alert, metric, bound: Number(bound) }];
    });
    expect(simple.length).toBeGreaterThan(5);
    for (const { alert, metric, bound } of simple) {
      const panels = shown.filter(({ targets = [] }) =>
        targets.some(({ expr }) => expr.includes(`${metric}{`)),
      );
      const drawn = panels.flatMap(
        ({ fieldConfig }) => fieldConfig?.defaults.thresholds?.steps.map(({ value }) => value) ?? [],
      );
      expect([alert, drawn.includes(bound)]).toEqual([alert, true]);
    }
  });
});

describe('every alert', () => {
  it('links to its heading in the runbook, which says what it means and what to do', () => {
    const sections = new Map(
      runbook.split(/^#{2,3} /m).map((section) => {
        const [heading = '', ...lines] = section.split('\n');
        return [anchorOf(heading), lines.join('\n')];
      }),
    );
    for (const { alert, annotations } of alerts) {
      const [path, anchor = ''] = annotations.runbook_url?.split('#') ?? [];
      expect([alert, path, anchor]).toEqual([alert, RUNBOOK, anchorOf(alert)]);
      expect([alert, sections.get(anchor)]).toEqual([
        alert,
        expect.stringMatching(/\S.*\n\n- Check: .*\n- Do: /s),
      ]);
    }
  });

  it('has a heading in the runbook, and no other heading names an alert', () => {
    const headings = [...runbook.matchAll(/^### (Quorate\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(alerts.map(({ alert }) => alert));
  });
});

it('the runbook has no dead links', () => {
  const anchors = new Set(
    [...runbook.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)),
  );
  const links = [...runbook.matchAll(/\]\(#([^)]*)\)/g)].map(([, anchor = '']) => anchor);
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter((anchor) => !anchors.has(anchor))).toEqual([]);
});
