/** Tests the cluster script with real processes: starting, watching and stopping nodes. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setImmediate as afterReading } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ClusterScript } from './cluster-script.ts';
import { eventually, isRunning } from './harness.ts';
import { CLI, quorate } from './nodes-command.ts';

describe('the cluster script', () => {
  let script: ClusterScript;
  beforeEach(async () => {
    script = await ClusterScript.create();
  });
  afterEach(async () => {
    await script.dispose();
  });

  it('starts three nodes, prints a curl line that works, watches them, and stops cleanly', async () => {
    const cluster = script.start('--limit', '2', '--window', '60000', '--partitions', '4');
    await cluster.says('Ctrl-C stops the cluster');
    expect(cluster.output).toContain("rule 'default': 2 per minute by user\n");
    const [, url = ''] = /console: (\S+)\n/.exec(cluster.output) ?? [];
    expect(await (await fetch(url)).text()).toContain('<title>');
    const curl = cluster.output.slice(
      cluster.output.indexOf('curl '),
      cluster.output.indexOf('\'{"userId":"ada"}\''),
    );
    let users = 0;
    const answer = await eventually('a node decides', async () => {
      // An undecided request may have counted, so the next attempt uses another user.
      const body = `'{"userId":"ada${users === 0 ? '' : users}"}'`;
      users += 1;
      const { stdout } = await promisify(execFile)('bash', ['-c', `${curl} ${body}`]);
      const reported = JSON.parse(stdout) as { readonly proposed?: boolean };
      return reported.proposed === undefined ? reported : undefined;
    });
    expect(answer).toMatchObject({ allowed: true, limit: 2, remaining: 1 });

    const [, second = 0] = await script.pids(3);
    expect(cluster.output).toMatch(new RegExp(`node 2 .* pid ${second}\n`));
    expect(cluster.output).toContain(`kill ${cluster.child.pid}\n`);
    process.kill(second, 'SIGKILL');
    await cluster.says('node 2 was ended by SIGKILL');
    await cluster.says('npm run node -- 2');
    const { child } = script.run(CLI, 'node', '2', '--data', script.directory);
    await cluster.says('node 2 is up again');

    const running = await eventually('node 1 learns of the new process', async () => {
      const pids = await script.pids(3);
      return pids[1] === child.pid ? pids : undefined;
    });
    expect(await cluster.end('SIGINT')).toBe(0);
    const own = running.filter((_, i) => i !== 1);
    expect(own.filter(isRunning)).toEqual([]);
    // A node that was started elsewhere keeps running. The script names it when it ends, and when it blocks the next
    // start.
    const [, by = 0] = running;
    const address = `127.0.0.1:${script.basePort + 2}`;
    expect(cluster.output).toContain(
      `node 2 (${address}, pid ${by}) was not started by this command and keeps running`,
    );
    const next = await script.refused();
    expect(next.output).toContain(
      `a cluster is already running on these ports: node 2 at ${address} (pid ${by})`,
    );
    expect(next.child.exitCode).toBe(69);
  });

  it('stops its nodes without an error when its output is closed', async () => {
    await quorate('init', '--data', script.directory, '--nodes', '1', '--base-port', String(script.basePort));
    const cluster = await eventually('the script prints to the closed output', async () => {
      const started = script.start();
      await started.says('starting 1 nodes');
      // Timers run before reads, so after a pause of this process the output may be there but unread.
      await afterReading();
      started.child.stdout?.destroy();
      if (!started.output.includes('Ctrl-C')) return started;
      // This process was paused meanwhile.
      await started.end('SIGTERM');
      return undefined;
    });
    expect(await cluster.ended()).toBe(0);
    expect(cluster.output).not.toContain('EPIPE');
    await expect(fetch(`http://127.0.0.1:${script.basePort + 1}/healthz`)).rejects.toThrow('fetch failed');
  });

  it('refuses options that do not fit the stored cluster, and explains why', async () => {
    await quorate('init', '--data', script.directory, '--nodes', '1', '--base-port', String(script.basePort));
    const cluster = script.start();
    await cluster.says('Ctrl-C stops the cluster');
    // A cluster that runs keeps its files, and its nodes.
    const second = await script.refused('--fresh');
    expect(second.output).toContain('a cluster is already running');
    expect(second.child.exitCode).toBe(69);
    expect((await script.pids(1)).filter(isRunning)).toHaveLength(1);
    const twin = script.run(CLI, 'node', '1', '--data', script.directory);
    await twin.says(
      `quorate: the database in ${join(script.directory, 'node-1')} is in use by another process`,
    );
    expect(await twin.ended()).toBe(70);
    await cluster.end('SIGTERM');
    const other = script.start('--partitions', '8');
    await other.says('--partitions 8 does not fit');
    expect(await other.ended()).toBe(64);
  });
});
