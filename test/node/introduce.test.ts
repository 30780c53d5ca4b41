/** Tests that `npm start` prints the rules in force. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { introduce } from '../../cluster/introduce.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import type { Rule } from '../../src/api/rule.ts';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import { definitionsOfTable } from '../../src/rules/limiter-rules.ts';

const FILE = localConfig({ ...LOCAL_DEFAULTS, limit: 50 });
const REPORT = { nodes: [], partitions: [] } as unknown as ClusterReport;

/** The printed text if these rules are in force. */
function printedFor(version: number, limits: readonly number[]): string {
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: unknown) => void lines.push(String(line)));
  onTestFinished(() => spy.mockRestore());
  const table = limits.map((limit, i): Rule => ({
    id: `r${i}`,
    limit,
    windowMillis: 1_000,
    clock: 'request',
  }));
  const rules = { version, definitions: definitionsOfTable(table) };
  introduce({ ...FILE, clusterId: 'c', founders: [] }, { data: 'd', rules }, REPORT);
  return lines.join('\n');
}

it('the rules in force are printed, not those in cluster.json', () => {
  const said = printedFor(2, [5]);
  expect(said).toContain('rules in force (version 2)');
  expect(said).toContain("rule 'r0': 5 per second by user\n");
  expect(said).not.toContain(' 50 per');
});

it('of many rules the first are printed', () => {
  const said = printedFor(
    2,
    Array.from({ length: 1_024 }, () => 5),
  );
  expect(said).toContain("rule 'r9'");
  expect(said).toContain('and 1014 more');
  expect(said.split('\n').length).toBeLessThan(40);
});
