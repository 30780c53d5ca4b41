/** Tests restarting the cluster script: it keeps data, and can move a cluster to other ports. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCluster } from '../../src/config/cluster-directory.ts';
import { ClusterScript } from './cluster-script.ts';
import { eventually } from './harness.ts';
import { CLI, command, nodeAt, nodeOptions, quorate } from './nodes-command.ts';

describe('the cluster script, started again', () => {
  let script: ClusterScript;
  beforeEach(async () => {
    script = await ClusterScript.create();
  });
  afterEach(async () => {
    await script.dispose();
  });

  it('keeps its data and rules across restarts, ignores the rules of the file, and starts afresh with --fresh', async () => {
    // The window is longer than a test takes on any machine.
    const first = script.start('--limit', '1', '--window', '3600000');
    await first.says('Ctrl-C stops the cluster');
    expect(await script.ask()).toMatchObject({ allowed: true, remaining: 0 });
    await first.end('SIGTERM');

    // The rules of the file apply only at the creation of the cluster.
    const path = join(script.directory, 'cluster.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"limit": 1', '"limit": 3'));
    const refused = script.start('--limit', '3');
    await refused.says('--limit is only for a new cluster');
    expect(await refused.ended()).not.toBe(0);
    const second = script.start();
    await second.says('Ctrl-C stops the cluster');
    expect(second.output).toContain("rule 'default': 1 per hour by user\n");
    expect(await script.ask()).toMatchObject({ allowed: false, limit: 1 });
    await second.end('SIGTERM');

    const third = script.start('--fresh');
    await third.says('Ctrl-C stops the cluster');
    expect(await script.ask()).toMatchObject({ allowed: true, limit: 100, remaining: 99 });
  });

  it('moves a cluster with a joined node to other ports, and starts no node that left or was never added', async () => {
    const limits = ['--limit', '1', '--window', '3600000', '--partitions', '4'];
    const first = script.start(...limits);
    await first.says('Ctrl-C stops the cluster');
    const four = nodeAt(4, script.basePort + 4, script.basePort + 1_004);
    await quorate('join', '--data', script.directory, ...nodeOptions(four));
    const joined = script.run(CLI, 'node', '4', '--data', script.directory);
    await command(script.basePort + 1, { add: four, remove: 3 });
    await quorate(
      'join',
      '--data',
      script.directory,
      ...nodeOptions(nodeAt(5, script.basePort + 5, script.basePort + 1_005)),
    );
    expect(await script.ask()).toMatchObject({ allowed: true });
    await first.says('node 3 is stopped: node 3 was removed from the cluster');
    const { founders } = (await readCluster(script.directory)) ?? {};
    await Promise.all([first.end('SIGTERM'), joined.end('SIGTERM')]);

    await script.move();
    const second = script.start();
    await second.says('Ctrl-C stops the cluster');
    expect(second.output).toContain('starting 3 nodes of cluster');
    expect(second.output).toContain('node 3 was removed from the cluster: not started');
    expect(second.output).toContain('node 5 is prepared and does not belong to the cluster yet: not started');
    // It is one cluster with its earlier grants: every node denies, also if another node leads the partition.
    for (const id of [1, 2, 4]) expect(await script.ask(id)).toMatchObject({ allowed: false, limit: 1 });
    expect((await readCluster(script.directory))?.founders).toEqual(founders);
    // The new addresses are replicated.
    await eventually('node 1 reports the new addresses', async () => {
      const { nodes } = await script.statusOf(1);
      const expected = [1, 2, 4].map((id) => `127.0.0.1:${script.basePort + id}`);
      return nodes.map(({ http }) => http).join() === expected.join() ? true : undefined;
    });
  });
});
