/**
 * Tests containers without a cluster id, which draw one, and a container with only the secrets of `container secrets`.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ran } from '../cli/command.ts';
import { eventually } from '../cluster/harness.ts';
import { Pods } from './pods.ts';

const ALL = [0, 1, 2];
let pods: Pods;
beforeEach(async () => {
  pods = await Pods.create();
});
afterEach(() => pods.stopAll());

/** With TLS that checks the name of the pod. */
async function status(path: string, ca: string, token?: string): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(
      {
        host: '127.0.4.9',
        port: pods.ports.http,
        path,
        ca,
        servername: pods.nameOf(0),
        ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      },
      (response) => resolve(response.resume().statusCode ?? 0),
    );
    asked.on('error', () => resolve(0)).end();
  });
}

it('three containers without a cluster id draw one, keep it, and know the zone of each', async () => {
  for (const ordinal of ALL) {
    pods.environment = { QUORATE_CLUSTER_ID: '', QUORATE_ZONE: `zone-${ordinal % 2}` };
    await pods.start(ordinal, `127.0.4.${2 + ordinal}`);
  }
  await pods.ready(ALL);
  const ids = ALL.map((ordinal) => pods.recordOf(ordinal)['clusterId']);
  expect(ids).toEqual(ALL.map(() => pods.recordOf(0)['incarnation']));
  const { body } = await pods.ask(1, '/v1/allow', { userId: 'ada' });
  expect(body).toMatchObject({ allowed: true });
  // The zones are those of the founders.
  const { body: cluster } = await pods.ask(1, '/v1/cluster');
  const nodes = cluster['nodes'] as readonly { readonly zone?: string }[];
  expect(nodes.map(({ zone }) => zone)).toEqual(['zone-0', 'zone-1', 'zone-0']);
  await pods.stop(2, 'SIGTERM');
  await pods.start(2, '127.0.4.5');
  await pods.ready([2]);
  // One that joins learns it.
  await pods.start(3, '127.0.4.6');
  await eventually('the fourth container waits to be added', () =>
    pods.pod(3).said().includes('is prepared: add it with') ? true : undefined,
  );
  expect(pods.recordOf(3)['clusterId']).toBe(ids[0]);
});

it('a container is closed with TLS and tokens from the files of one command', async () => {
  const { directory } = pods;
  const mounted = join(directory, 'secrets', 'certs');
  const host = 'quorate-{ordinal}.quorate.test';
  const args = ['container', 'secrets', '--pattern', host, '--nodes', '1', '--mounted-at', mounted];
  const { code } = await ran(args, directory);
  expect(code).toBe(0);
  pods.environment = {
    QUORATE_CLUSTER_ID: '',
    QUORATE_FOUNDERS: '1',
    QUORATE_SETTINGS: join(mounted, 'settings.json'),
  };
  await pods.start(0, '127.0.4.9');
  const ca = await readFile(join(mounted, 'ca.crt'), 'utf8');
  await eventually('the container is ready', async () =>
    (await status('/readyz', ca)) === 200 ? true : undefined,
  );
  const [admin, read] = await Promise.all(
    ['admin', 'read'].map((role) => readFile(join(directory, 'secrets', 'tokens', role), 'utf8')),
  );
  expect(await status('/metrics', ca)).toBe(401);
  expect(await status('/metrics', ca, read)).toBe(200);
  expect(await status('/v1/tokens', ca, read)).toBe(403);
  expect(await status('/v1/tokens', ca, admin)).toBe(200);
  // Applies rules like the job of the chart, with the token of its secret.
  await writeFile(
    join(directory, 'rules.yaml'),
    'rules:\n  - id: default\n    windows: { limit: 5, per: minute }\n',
  );
  const node = `https://${pods.nameOf(0)}:${pods.ports.http}`;
  const apply = ['rules', 'apply', 'rules.yaml', '--node', node, '--ca', join(mounted, 'ca.crt')];
  expect(await pods.run(apply, { QUORATE_TOKEN: admin ?? '' })).toEqual([
    0,
    expect.stringContaining('in force'),
  ]);
  // The command may be repeated. A token of role read is refused.
  expect(await pods.run(apply, { QUORATE_TOKEN: admin ?? '' })).toEqual([0, expect.any(String)]);
  expect(await pods.run(apply, { QUORATE_TOKEN: read ?? '' })).toEqual([64, expect.any(String)]);
});
