/**
 * One page that shows a run: the verdict, then on a common time axis the latency and rate of the operations, the
 * faults, and the spans of unavailability. A single file that loads nothing and runs no script.
 */
import type { Operation } from './history.ts';
import type { NemesisBand } from './nemesis-log.ts';
import { type Kind, KINDS, reportData, type ReportData, type Step } from './report-data.ts';
import type { Verdict } from './verdict.ts';

const WIDTH = 1_160;
const LEFT = 64;
const RIGHT = 12;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const NANOS_PER_MILLI = 1e6;

export interface ReportInput {
  readonly title: string;
  readonly history: readonly Operation[];
  readonly bands: readonly NemesisBand[];
  readonly verdict: Verdict;
  /** The command that repeats the run, as far as chance allows. */
  readonly command: string | undefined;
}

export function reportPage({ title, history, bands, verdict, command }: ReportInput): string {
  const data = reportData(history);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escape(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escape(title)} <span class="status ${verdict.verdict}">${verdict.verdict}</span></h1>
<p>${KINDS.map((kind) => `<span class="key ${kind}"></span>${verdict.operations[kind]} ${kind}`).join(' &nbsp; ')}
 &nbsp; of ${verdict.operations.total} in ${(data.durationMillis / 1_000).toFixed(1)} s</p>
${command === undefined ? '' : `<p>Again: <code>${escape(command)}</code></p>`}
${LEGEND}
${operationsPanel(data, bands)}
${latencyPanel(data, bands)}
${ratePanel(data, bands)}
${gapsPanel(data, bands, verdict)}
${bandsTable(data, bands, verdict)}
${checksTable(verdict)}
</body>
</html>
`;
}

const MEANINGS: Readonly<Record<Kind, string>> = {
  granted: 'answered 200: the request counts',
  denied: 'answered 429: the request does not count',
  failed: 'refused, or never sent: certainly nothing happened',
  unknown: 'no answer that decides it: it may count now, later or never',
};

const LEGEND = `<ul class="legend">
${KINDS.map((kind) => `<li><span class="key ${kind}"></span>${kind}: ${MEANINGS[kind]}</li>`).join('\n')}
<li><span class="key band"></span>shaded: something was broken, or the machine was too slow; point at it for what</li>
<li><span class="key gap"></span>bars below: a partition decided nothing while it was asked</li>
<li><span class="key p50"></span>half of the answers came sooner; <span class="key p99"></span>99 of 100 did; <span class="key max"></span>all did</li>
</ul>`;

/** Horizontal position of a time. */
function x(data: ReportData, millis: number): number {
  return LEFT + (Math.min(Math.max(millis, 0), data.durationMillis) / data.durationMillis) * PLOT_WIDTH;
}

function sinceOrigin({ originNanos }: ReportData, nanos: number): number {
  return (nanos - originNanos) / NANOS_PER_MILLI;
}

function panel(
  title: string,
  height: number,
  data: ReportData,
  bands: readonly NemesisBand[],
  body: string,
): string {
  const shades = bands.map((band) => {
    const start = x(data, sinceOrigin(data, band.startNanos));
    const end = band.endNanos === null ? WIDTH - RIGHT : x(data, sinceOrigin(data, band.endNanos));
    return `<rect class="band" x="${px(start)}" y="0" width="${px(Math.max(1, end - start))}" height="${height}"><title>${escape(nameOf(band))}</title></rect>`;
  });
  const seconds = niceStep(data.durationMillis / 1_000 / 10);
  const ticks: string[] = [];
  for (let at = 0; at * 1_000 <= data.durationMillis; at += seconds) {
    const tick = px(x(data, at * 1_000));
    ticks.push(`<line class="grid" x1="${tick}" x2="${tick}" y1="0" y2="${height}"/>`);
    ticks.push(`<text x="${tick}" y="${height + 14}" text-anchor="middle">${Number(at.toFixed(3))} s</text>`);
  }
  return `<h2>${escape(title)}</h2>
<svg viewBox="0 0 ${WIDTH} ${height + 20}" width="${WIDTH}" height="${height + 20}" role="img" aria-label="${escape(title)}">
${shades.join('\n')}
${ticks.join('')}
${body}
</svg>`;
}

const LATENCY_MILLIS_MIN = 0.1;

/** Vertical position on a logarithmic scale that ends at `max`. */
function logY(millis: number, max: number, height: number): number {
  const span = Math.log(max / LATENCY_MILLIS_MIN);
  return height - (Math.log(Math.max(millis, LATENCY_MILLIS_MIN) / LATENCY_MILLIS_MIN) / span) * height;
}

function latencyTicks(max: number, height: number): string {
  const lines: string[] = [];
  for (let at = LATENCY_MILLIS_MIN; at <= max; at *= 10) {
    const y = px(logY(at, max, height));
    lines.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>`);
    lines.push(`<text x="${LEFT - 6}" y="${y}" dy="4" text-anchor="end">${Number(at.toFixed(1))} ms</text>`);
  }
  return lines.join('');
}

function operationsPanel(data: ReportData, bands: readonly NemesisBand[]): string {
  const height = 220;
  const max = 1.3 * data.dots.reduce((most, { latencyMillis }) => Math.max(most, latencyMillis), 10);
  // One path for each kind: thousands of elements would make the page slow.
  const paths = KINDS.map((kind) => {
    const dots = data.dots.filter((dot) => dot.kind === kind);
    const moves = dots.map(
      ({ atMillis, latencyMillis }) => `M${px(x(data, atMillis))} ${px(logY(latencyMillis, max, height))}h0`,
    );
    return `<path class="dots ${kind}" d="${moves.join('')}"/>`;
  });
  const body = latencyTicks(max, height) + paths.join('\n');
  return panel('Operations: when they ended, how long they took', height, data, bands, body);
}

function latencyPanel(data: ReportData, bands: readonly NemesisBand[]): string {
  const height = 160;
  const max = 1.3 * data.steps.reduce((most, { maxMillis }) => Math.max(most, maxMillis ?? 0), 10);
  const line = (name: string, of: (step: Step) => number | undefined): string => {
    let path = '';
    let isDrawing = false;
    for (const step of data.steps) {
      const value = of(step);
      if (value !== undefined) {
        const at = px(x(data, step.startMillis + data.stepMillis / 2));
        path += `${isDrawing ? 'L' : 'M'}${at} ${px(logY(value, max, height))}`;
      }
      isDrawing = value !== undefined;
    }
    return `<path class="line ${name}" d="${path}"><title>${name}</title></path>`;
  };
  const lines = [
    line('max', ({ maxMillis }) => maxMillis),
    line('p99', ({ p99Millis }) => p99Millis),
    line('p50', ({ p50Millis }) => p50Millis),
  ];
  const body = latencyTicks(max, height) + lines.join('\n');
  return panel('Latency of decisions: median, 99th percentile, maximum', height, data, bands, body);
}

function ratePanel(data: ReportData, bands: readonly NemesisBand[]): string {
  const height = 160;
  const max = data.steps.reduce((most, { perSecond }) => {
    const total = KINDS.reduce((sum, kind) => sum + perSecond[kind], 0);
    return Math.max(most, total);
  }, 1);
  const y = (perSecond: number): number => height - (perSecond / max) * height;
  const stacked = (kind: Kind): string => {
    const below = KINDS.slice(0, KINDS.indexOf(kind));
    let path = '';
    for (const step of data.steps) {
      const value = step.perSecond[kind];
      if (value === 0) continue;
      const base = below.reduce((sum, other) => sum + step.perSecond[other], 0);
      const [from, to] = [x(data, step.startMillis), x(data, step.startMillis + data.stepMillis)];
      path += `M${px(from)} ${px(y(base))}V${px(y(base + value))}H${px(Math.max(to, from + 1))}V${px(y(base))}Z`;
    }
    return `<path class="area ${kind}" d="${path}"/>`;
  };
  const ticks: string[] = [];
  const every = niceStep(max / 4);
  for (let at = 0; at <= max; at += every) {
    ticks.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${px(y(at))}" y2="${px(y(at))}"/>`);
    ticks.push(
      `<text x="${LEFT - 6}" y="${px(y(at))}" dy="4" text-anchor="end">${Number(at.toFixed(2))}/s</text>`,
    );
  }
  return panel('Rate', height, data, bands, ticks.join('') + KINDS.map(stacked).join('\n'));
}

function gapsPanel(data: ReportData, bands: readonly NemesisBand[], { gaps, settings }: Verdict): string {
  const groups = [...new Set(gaps.map(({ group }) => group))].sort((a, b) => a - b);
  const rowHeight = 9;
  const height = Math.max(20, groups.length * rowHeight);
  const rows = gaps.map(({ group, startNanos, endNanos }) => {
    const [from, to] = [x(data, sinceOrigin(data, startNanos)), x(data, sinceOrigin(data, endNanos))];
    const millis = Math.round((endNanos - startNanos) / NANOS_PER_MILLI);
    const top = groups.indexOf(group) * rowHeight + 1;
    return `<rect class="gap" x="${px(from)}" y="${top}" width="${px(Math.max(1, to - from))}" height="${rowHeight - 2}"><title>partition ${group}: ${millis} ms without a decision</title></rect>`;
  });
  const title = `Unavailability: partitions without a decision for ${settings.gapMillisMin} ms or more`;
  const longest =
    gaps.reduce((most, gap) => Math.max(most, gap.endNanos - gap.startNanos), 0) / NANOS_PER_MILLI;
  const text = gaps.length === 0 ? 'none' : `${gaps.length} gaps, the longest ${Math.round(longest)} ms`;
  return `${panel(title, height, data, bands, rows.join('\n'))}<p>${text}</p>`;
}

function bandsTable(data: ReportData, bands: readonly NemesisBand[], { recoveries }: Verdict): string {
  if (bands.length === 0) return '<h2>Faults</h2><p>none</p>';
  const rows = bands.map((band, i) => {
    const start = (sinceOrigin(data, band.startNanos) / 1_000).toFixed(2);
    const end = band.endNanos === null ? 'never' : (sinceOrigin(data, band.endNanos) / 1_000).toFixed(2);
    const first = recoveries[i]?.firstGrantMillis ?? null;
    const recovery = first === null ? '' : `${first.toFixed(0)} ms`;
    return `<tr><td>${escape(nameOf(band))}</td><td>${start}</td><td>${end}</td><td>${recovery}</td></tr>`;
  });
  return `<h2>Faults</h2><table><tr><th>fault</th><th>from, s</th><th>to, s</th><th>then the first grant after</th></tr>
${rows.join('\n')}</table>`;
}

function checksTable({ checks }: Verdict): string {
  const rows = checks.map(({ name, status, violations, findings, counts, note }) => {
    const numbers = Object.entries(counts).map(([what, count]) => `${what} ${Math.round(count)}`);
    const details = [...numbers, ...(note === undefined ? [] : [note])].map(escape).join(', ');
    const list = findings.map((finding) => `<li>${escape(finding)}</li>`).join('');
    const more = violations > findings.length ? `<li>and ${violations - findings.length} more</li>` : '';
    const found = list === '' ? '' : `<ul>${list}${more}</ul>`;
    return `<tr><td>${escape(name)}</td><td><span class="status ${status}">${status}</span></td><td>${details}${found}</td></tr>`;
  });
  return `<h2>Checks</h2><table>${rows.join('\n')}</table>`;
}

function nameOf({ kind, nodes }: NemesisBand): string {
  return nodes.length === 0 ? kind : `${kind} ${nodes.join(', ')}`;
}

/** 1, 2 or 5 times a power of ten, at least `min`. */
function niceStep(min: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(min, 1e-3)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= min) ?? 10 * power;
}

function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escape(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

const STYLE = `
:root { color-scheme: light dark; --text: #1b1f24; --grid: #d9dee4; --page: #fff; --band: #e5484d;
  --granted: #2a9d5c; --denied: #3b7dd8; --failed: #b8860b; --unknown: #c2378f; }
@media (prefers-color-scheme: dark) { :root { --text: #d7dce2; --grid: #333a42; --page: #14181c; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 24px; max-width: ${WIDTH}px; }
h1 { font-size: 20px; } h2 { font-size: 15px; margin: 22px 0 6px; }
svg { max-width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--text); }
table { border-collapse: collapse; } td, th { text-align: left; vertical-align: top; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); }
ul { margin: 4px 0; padding-left: 18px; }
.status { padding: 1px 7px; border-radius: 4px; color: #fff; background: #6b7280; font-size: 0.85em; }
.status.ok { background: #2a9d5c; } .status.violation { background: #c62a2f; } .status.unknown { background: #b8860b; }
.key { display: inline-block; width: 10px; height: 10px; margin-right: 4px; }
.legend { list-style: none; padding: 0; columns: 2; } .key.band, .key.gap { background: var(--band); } .key.band { opacity: 0.3; }
.key.p50 { background: var(--granted); } .key.p99 { background: var(--denied); } .key.max { background: var(--unknown); }
.grid { stroke: var(--grid); stroke-width: 1; } .band { fill: var(--band); opacity: 0.14; } .gap { fill: var(--band); }
.dots { stroke-width: 3; stroke-linecap: round; fill: none; opacity: 0.7; }
.line { fill: none; stroke-width: 1.4; } .line.p50 { stroke: var(--granted); } .line.p99 { stroke: var(--denied); } .line.max { stroke: var(--unknown); opacity: 0.6; }
${KINDS.map((kind) => `.dots.${kind} { stroke: var(--${kind}); } .area.${kind} { fill: var(--${kind}); } .key.${kind} { background: var(--${kind}); }`).join('\n')}
`;
