/** What `npm start` says of the rules: a cluster that changed them while it ran is not told to take that back. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { introduce } from '../../cluster/introduce.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';

const FILE = localConfig({ ...LOCAL_DEFAULTS, limit: 50 });

/** All that is said where these rules are in force. */
function saidOf(version: number, limits: readonly number[]): string {
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: unknown) => void lines.push(String(line)));
  onTestFinished(() => spy.mockRestore());
  const rules = limits.map((limit, i) => ({ id: `r${i}`, limit, windowMillis: 1_000 }));
  const report = { nodes: [], partitions: [], rules: { version, rules } };
  introduce({ ...FILE, clusterId: 'c', founders: [] }, { data: 'd' }, report as unknown as ClusterReport);
  return lines.join('\n');
}

it('rules that are newer than the file are said to be, and no way to lose them is advised', () => {
  const said = saidOf(2, [5]);
  expect(said).toContain('they are of version 2, and newer than those of cluster.json (1)');
  expect(said).not.toContain('raise');
});

it('a file that was edited under the version in force is said to be without effect', () => {
  expect(saidOf(1, [5])).toMatch(/cluster.json says something else .*\n {2}rules.version above 1/);
});

it('of many rules the first are told', () => {
  const said = saidOf(
    2,
    Array.from({ length: 1_024 }, () => 5),
  );
  expect(said).toContain("rule 'r9'");
  expect(said).toContain('and 1014 more');
  expect(said.split('\n').length).toBeLessThan(40);
});
