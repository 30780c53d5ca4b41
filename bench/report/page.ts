/** Writes the results of a run as one self-contained HTML page with charts and tables. */
import type { BenchResults } from './results.ts';
import { type Comparison, comparisonsOf, type CellSummary } from '../summary.ts';
import { barChart, escaped, latencyChart } from './chart.ts';
import { COLUMNS } from './table.ts';

const OURS = 'quorate';

const STYLE = `
:root { color-scheme: light dark; --ours: #0b7a75; --other: #8a94a6; --line: #8884; --text: #1c2430; --back: #fff; }
@media (prefers-color-scheme: dark) { :root { --ours: #2fb5ad; --other: #76819a; --text: #e4e8ef; --back: #14181f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; } h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
svg { width: 100%; max-width: 840px; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .label { text-anchor: end; } svg .tick { text-anchor: middle; opacity: 0.7; }
svg .ours { fill: var(--ours); } svg .other { fill: var(--other); }
svg .range { stroke: var(--text); stroke-width: 1.5; } svg .grid { stroke: var(--line); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; white-space: nowrap; }
td, th { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; }
td:first-child, th:first-child { text-align: left; } tr.ours td:first-child { color: var(--ours); font-weight: 600; }
dt { font-weight: 600; } dd { margin: 0 0 0.4rem; }
`;

function isOurs({ thing }: CellSummary): boolean {
  return thing === OURS;
}

function table(rows: readonly CellSummary[]): string {
  const head = COLUMNS.map(({ title }) => `<th>${escaped(title)}</th>`).join('');
  const body = rows.map((row) => {
    const cells = COLUMNS.map(({ text }) => `<td>${escaped(text(row))}</td>`).join('');
    return `<tr${isOurs(row) ? ' class="ours"' : ''}>${cells}</tr>`;
  });
  return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function section({ title, rows }: Comparison): string {
  const rates = rows.map((row) => ({
    label: row.thingName,
    value: row.decisionsPerSecond,
    isOurs: isOurs(row),
  }));
  const latencies = rows.map((row) => ({
    label: row.thingName,
    p50Millis: row.p50Millis?.median ?? Number.NaN,
    p99Millis: row.p99Millis?.median ?? Number.NaN,
    p999Millis: row.p999Millis?.median ?? Number.NaN,
    isOurs: isOurs(row),
  }));
  const costs = rows.flatMap((row) =>
    row.cpuSecondsPerMillion === undefined
      ? []
      : [{ label: row.thingName, value: row.cpuSecondsPerMillion, isOurs: isOurs(row) }],
  );
  const shown = latencies.filter(({ p50Millis }) => Number.isFinite(p50Millis));
  return [
    `<h2>${escaped(title)}</h2>`,
    `<h3>Decisions per second</h3>${barChart(`${title}: decisions per second`, rates)}`,
    shown.length > 0
      ? `<h3>Latency: p50, p99, p99.9</h3>${latencyChart(`${title}: latency in milliseconds`, shown)}`
      : '',
    costs.length > 0
      ? `<h3>CPU seconds per million decisions, all processes</h3>${barChart(`${title}: CPU`, costs)}`
      : '',
    table(rows),
  ].join('\n');
}

function facts(results: BenchResults): string {
  const { startedAt, commit, loadAverageBefore, machine, options, notes, things } = results;
  const { cpuModel, cpus, memoryBytes, system, node } = machine;
  const memory = `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`;
  const promises = things.map(
    ({ name, promise }) => `<dt>${escaped(name)}</dt><dd>${escaped(promise.inWords)}</dd>`,
  );
  return [
    `<p>${escaped(startedAt)}${commit === undefined ? '' : `, commit ${escaped(commit)}`}: ${options.rounds} rounds of ${options.measuredMillis / 1_000} s each, seed ${options.seed}. `,
    `${cpus} x ${escaped(cpuModel)}, ${memory}, ${escaped(system)}, Node ${escaped(node)}; load average before: ${loadAverageBefore.toFixed(1)}.</p>`,
    '<p>Bars are medians of the rounds, thin lines their range. Ratios were taken round by round.</p>',
    `<h2>What a grant means</h2><dl>${promises.join('')}</dl>`,
    notes.length > 0
      ? `<h2>Notes</h2><ul>${notes.map((each) => `<li>${escaped(each)}</li>`).join('')}</ul>`
      : '',
  ].join('\n');
}

/** Returns the HTML document. */
export function resultsPage(results: BenchResults): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Quorate: bench</title><style>${STYLE}</style></head>
<body>
<h1>Quorate: bench</h1>
${facts(results)}
${comparisonsOf(results.summaries).map(section).join('\n')}
</body>
</html>
`;
}
