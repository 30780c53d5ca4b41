/** Tests a cluster at `::1`: the start script, the commands, and the addresses that nodes report. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { isClusterReport } from '../../src/api/cluster-report.ts';
import { ClusterScript, type Session } from './cluster-script.ts';
import { eventually } from './harness.ts';
import { quorate } from './nodes-command.ts';

const START = join(import.meta.dirname, '../../dist/cluster/start.js');
const READY = 'Ctrl-C stops the cluster';

it('a cluster at ::1 starts, reports its addresses with brackets, and commands find it', async () => {
  const script = await ClusterScript.create();
  onTestFinished(async () => script.dispose());
  const { directory, basePort } = script;
  await quorate('init', '--data', directory, '--nodes', '1', '--base-port', String(basePort));
  const path = join(directory, 'cluster.json');
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll('127.0.0.1', '::1'));

  const cluster = await eventually('the cluster is ready before the script gives up', async () => {
    const started: Session = script.run(START, '--data', directory);
    const isReady = await eventually('the cluster is ready or the script ends', () => {
      if (started.output.includes('Invalid URL')) throw new Error(started.output);
      return started.output.includes(READY) || (started.child.exitCode === null ? undefined : false);
    });
    return isReady ? started : undefined;
  });
  const url = `http://[::1]:${basePort + 1}`;
  expect(cluster.output).toContain(`node 1  ${url}  redis://[::1]:${basePort + 2_001}`);
  const report: unknown = await (await fetch(`${url}/v1/cluster`)).json();
  if (!isClusterReport(report)) throw new Error('the response is no cluster report');
  expect(report.nodes.map(({ http }) => http)).toEqual([`[::1]:${basePort + 1}`]);

  const status = JSON.parse(await quorate('status', '--data', directory, '--json')) as {
    readonly nodes: readonly { readonly state: string }[];
  };
  expect(status.nodes.map(({ state }) => state)).toEqual(['ready']);
  expect(await quorate('doctor', '--data', directory)).toContain(`no problems, as reported by ${url}`);
  await quorate('backup', '--node', url, '--out', join(directory, 'backup'));
  expect((await script.run(START, '--data', directory).ended()) ?? 0).toBe(69);
  expect(await cluster.end('SIGINT')).toBe(0);
});
