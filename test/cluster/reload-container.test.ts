/** Tests `kill -HUP` of a container: it rereads its settings file and rewrites its cluster.json. */
import { readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Session } from './cluster-script.ts';
import { freePorts, temporaryDirectory } from './harness.ts';
import { CLI } from './nodes-command.ts';

it('adopts the settings of its file, and names the field of a wrong setting', async () => {
  const directory = await temporaryDirectory();
  const [http, peer, resp, grpc, founding] = await freePorts(5);
  const settings = join(directory, 'settings.json');
  writeFileSync(settings, '{}');
  const container = new Session([CLI, 'container'], {
    QUORATE_CLUSTER_ID: 'c',
    QUORATE_HOST: '127.0.0.1',
    QUORATE_ORDINAL: '0',
    QUORATE_FOUNDERS: '1',
    QUORATE_LISTEN: '127.0.0.1',
    QUORATE_HTTP_PORT: String(http),
    QUORATE_PEER_PORT: String(peer),
    QUORATE_RESP_PORT: String(resp),
    QUORATE_GRPC_PORT: String(grpc),
    QUORATE_FOUNDING_PORT: String(founding),
    QUORATE_SETTINGS: settings,
    QUORATE_DATA: join(directory, 'data'),
  });
  onTestFinished(async () => {
    await container.end('SIGTERM');
    await rm(directory, { recursive: true });
  });
  await container.says('node is up');
  writeFileSync(settings, '{"http": {"userHeader": "x-account"}, "leaders": "spread"}');
  container.child.kill('SIGHUP');
  await container.says('"field":"http.userHeader","to":"x-account"');
  await container.says('"field":"leaders","msg":"a setting changed: in force after a restart of this node"');
  const file = join(directory, 'data', 'cluster.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ http: { userHeader: 'x-account' } });
  writeFileSync(settings, '{"http": {"userHeader": ""}}');
  container.child.kill('SIGHUP');
  await container.says('"field":"http.userHeader","reason":"http.userHeader must be the name of a header');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ http: { userHeader: 'x-account' } });
});
