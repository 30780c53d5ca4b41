/** Tests the command that makes all secrets for the containers of a new closed cluster. */
import { X509Certificate } from 'node:crypto';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { containerSettings } from '../../src/cli/container-settings.ts';
import { validateConfig } from '../../src/config/config.ts';
import { localConfig, LOCAL_DEFAULTS } from '../../src/config/cluster-directory.ts';
import { isSecretOf } from '../../src/config/token-secret.ts';
import { nodeNameIn } from '../../src/tls/node-name.ts';
import { type Ended, ran } from '../cli/command.ts';
import { temporaryDirectory } from '../cluster/harness.ts';

const HOST = 'quorate-{ordinal}.quorate-nodes';
let directory: string;
let out: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  out = join(directory, 'secrets');
});
afterEach(() => rm(directory, { recursive: true }));

async function secrets(...args: readonly string[]): Promise<Ended> {
  return ran(['container', 'secrets', ...args], directory);
}

async function certificate(id: number): Promise<X509Certificate> {
  return new X509Certificate(await readFile(join(out, 'certs', `node-${id}.crt`)));
}

describe('quorate container secrets', () => {
  it('creates all files that the containers mount, and separately the tokens and the key of the CA', async () => {
    const { code, stdout } = await secrets('--pattern', HOST, '--also-host', 'limits.example');
    expect(code).toBe(0);
    expect(stdout).toContain('certificates of node 1, 2, 3, valid until');
    expect(stdout).toContain('Move it to a machine without a node');
    const nodes = [1, 2, 3].flatMap((id) => [`node-${id}.crt`, `node-${id}.key`]);
    expect(await readdir(join(out, 'certs'))).toEqual(['ca.crt', ...nodes, 'settings.json']);
    expect([await readdir(join(out, 'ca')), await readdir(join(out, 'tokens'))]).toEqual([
      ['ca.key'],
      ['admin', 'read'],
    ]);
    for (const path of ['ca/ca.key', 'tokens/admin', 'tokens/read', 'certs/node-1.key'])
      expect((await stat(join(out, path))).mode & 0o077).toBe(0);
  });

  it('creates files that a container starts with unchanged', async () => {
    await secrets('--pattern', HOST);
    const { clusterId, local } = await containerSettings({
      QUORATE_HOST: HOST,
      HOSTNAME: 'quorate-1',
      QUORATE_SETTINGS: join(out, 'certs', 'settings.json'),
    });
    const config = validateConfig({ ...localConfig(LOCAL_DEFAULTS), ...local, clusterId });
    expect(config.tls).toMatchObject({
      ca: '/secrets/ca.crt',
      key: '/secrets/node-{id}.key',
      listeners: true,
    });
    expect(config.tokens?.map(({ role }) => role)).toEqual(['admin', 'read']);
    for (const entry of config.tokens ?? []) {
      const token = await readFile(join(out, 'tokens', entry.role), 'utf8');
      const [, id, secret = ''] = /^qt_([^_]+)_(.+)$/.exec(token) ?? [];
      expect([id, isSecretOf(entry, secret)]).toEqual([entry.id, true]);
    }
    const issued = await certificate(2);
    expect(nodeNameIn(issued.subjectAltName)).toEqual({ clusterId, nodeId: 2 });
    expect(issued.checkHost('quorate-1.quorate-nodes')).toBe('quorate-1.quorate-nodes');
  });

  it('renews certificates and adds nodes, and keeps the rest', async () => {
    await secrets('--pattern', HOST);
    const kept = ['certs/ca.crt', 'certs/settings.json', 'tokens/admin'];
    const before = await Promise.all(kept.map((path) => readFile(join(out, path), 'utf8')));
    const [{ serialNumber }] = [await certificate(1)];
    const moved = join(directory, 'ca.key');
    await rename(join(out, 'ca', 'ca.key'), moved);
    const without = await secrets('--pattern', HOST);
    expect(without.said).toContain('secrets/ca/ca.key is not there');
    const args = ['--pattern', HOST, '--nodes', '4', '--node-ids', '1:1001', '--ca-key', moved];
    expect(await secrets(...args)).toMatchObject({ code: 0 });
    expect(await Promise.all(kept.map((path) => readFile(join(out, path), 'utf8')))).toEqual(before);
    expect((await certificate(1)).serialNumber).not.toBe(serialNumber);
    expect((await certificate(1_001)).checkHost('quorate-1.quorate-nodes')).toBeDefined();
    expect((await certificate(4)).checkHost('quorate-3.quorate-nodes')).toBeDefined();
  });

  it('creates no second CA if the certificate of the first is gone', async () => {
    await secrets('--pattern', HOST);
    await rm(join(out, 'ca'), { recursive: true });
    await rm(join(out, 'certs', 'ca.crt'));
    const { code, said } = await secrets('--pattern', HOST);
    expect([code, said]).toEqual([64, expect.stringContaining('ca.crt is gone')]);
    expect(await readdir(out)).toEqual(['certs', 'tokens']);
  });

  it.each([
    [['--pattern', 'quorate'], 'expected a host name with {ordinal} in it'],
    [['--pattern', 'a b-{ordinal}'], 'expected a host name or an address, without a port'],
    [['--pattern', HOST, '--nodes', '0'], 'expected a whole number from 1 to 64'],
    [['--pattern', HOST, '--node-ids', '1:5'], 'QUORATE_NODE_IDS must be a list of ordinal:id'],
    [[], "required option '--pattern <hostname>' not specified"],
  ])('refuses %j', async (args, message) => {
    const { code, said } = await secrets(...args);
    expect(said).toContain(message);
    expect(code).toBe(64);
  });

  it('refuses a directory of another purpose', async () => {
    await secrets('--pattern', HOST);
    await writeFile(join(out, 'certs', 'settings.json'), '{}');
    expect((await secrets('--pattern', HOST)).said).toContain('settings.json must have a clusterId');
  });
});
