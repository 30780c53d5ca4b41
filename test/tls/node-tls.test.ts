/** The certificate files that a node opens for the settings in cluster.json. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OWN_TLS_SETTINGS } from '../../src/tls/certificate-files.ts';
import { type NodeTls, openNodeTls } from '../../src/tls/node-tls.ts';
import type { TlsSettings } from '../../src/config/tls-settings.ts';
import { Authority } from './authority.ts';

const name = { clusterId: 'a', nodeId: 12 };
let authority: Authority;
beforeAll(async () => {
  authority = await Authority.make('a');
  await authority.issue(name);
  await authority.issue({ ...name, nodeId: 13 });
});
afterAll(async () => {
  await authority.remove();
});

async function opened(settings: TlsSettings): Promise<NodeTls> {
  const { directory } = authority;
  const tls = await openNodeTls({ settings, directory, name, logger: pino({ level: 'silent' }) });
  tls.close();
  return tls;
}

describe('a node', () => {
  it('finds its files relative to the folder of cluster.json, and uses the same certificate for its API listeners', async () => {
    const { peers, listeners } = await opened(OWN_TLS_SETTINGS);
    const own = await readFile(join(authority.directory, 'certs', 'node-12.crt'), 'latin1');
    expect(peers.credentials.current.cert).toBe(own);
    expect(listeners?.current.cert).toBe(own);
  });

  it('may use another certificate of any name for its API listeners, or none', async () => {
    const { listeners: _, ...plain } = OWN_TLS_SETTINGS;
    expect((await opened(plain)).listeners).toBeUndefined();
    const other = { cert: join(authority.directory, 'certs', 'node-13.crt'), key: 'certs/node-13.key' };
    const { listeners } = await opened({ ...plain, listeners: other });
    expect(listeners?.current.cert).toBe(await readFile(other.cert, 'latin1'));
    expect(listeners?.current.ca).toBeUndefined();
    const missing = opened({ ...plain, listeners: { ...other, key: 'none' } });
    await expect(missing).rejects.toThrow(/^tls\.listeners\.key \(.*none\) is not there$/);
  });
});
