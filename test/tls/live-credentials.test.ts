/** Certificates that change while a node runs. */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CredentialFiles } from '../../src/tls/credentials.ts';
import { LiveCredentials } from '../../src/tls/live-credentials.ts';
import { Authority } from './authority.ts';

const DAY_MILLIS = 86_400_000;
const node = { clusterId: 'a', nodeId: 1 };
let authority: Authority;
let files: CredentialFiles;
let live: LiveCredentials;
let lines: { readonly level: number; readonly msg: string; readonly reason?: string }[];
let nowMillis: number;
let replacedCount: number;

beforeAll(async () => {
  authority = await Authority.make('a');
});
afterAll(async () => {
  await authority.remove();
});
beforeEach(async () => {
  files = await authority.issue({ ...node, days: 90 });
  lines = [];
  nowMillis = Date.now();
  replacedCount = 0;
  const logger = pino(
    { base: null },
    { write: (line) => lines.push(JSON.parse(line) as (typeof lines)[number]) },
  );
  live = await LiveCredentials.open({ setting: 'tls', files, node, logger, wallMillis: () => nowMillis });
  live.onReplaced(() => (replacedCount += 1));
});

async function certificateInFile(): Promise<string> {
  return readFile(files.cert, 'latin1');
}

function warned(): number {
  return lines.filter(({ msg }) => msg.startsWith('a certificate expires')).length;
}

describe('a new certificate', () => {
  it('is in force after two checks found the same files', async () => {
    await authority.issue(node);
    await live.check();
    expect(replacedCount).toBe(0);
    await live.check();
    expect(replacedCount).toBe(1);
    expect(live.current.cert).toBe(await certificateInFile());
    await live.check();
    await live.check();
    expect(replacedCount).toBe(1);
  });

  it('is in force at once on request', async () => {
    await authority.issue(node);
    await live.check({ isUrgent: true });
    expect(live.current.cert).toBe(await certificateInFile());
  });

  it('that is the same as before is not logged as a new one', async () => {
    await live.check({ isUrgent: true });
    expect(lines.map(({ msg }) => msg)).toEqual(['the certificate files were read again: nothing changed']);
    expect(replacedCount).toBe(0);
  });

  it('is not read while its files are being replaced', async () => {
    const before = { key: join(authority.directory, 'new.key'), cert: join(authority.directory, 'new.crt') };
    const old = { key: `${before.key}.old`, cert: `${before.cert}.old` };
    for (const kind of ['key', 'cert'] as const) await copyFile(files[kind], old[kind]);
    await authority.issue(node);
    for (const kind of ['key', 'cert'] as const) await copyFile(files[kind], before[kind]);
    for (const kind of ['key', 'cert'] as const) await copyFile(old[kind], files[kind]);
    await live.check({ isUrgent: true });
    await copyFile(before.key, files.key);
    await live.check();
    await copyFile(before.cert, files.cert);
    await live.check();
    await live.check();
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
    expect(live.current.cert).toBe(await certificateInFile());
  });

  it('that is not valid leaves the previous one in force, and is logged once, without any of the key', async () => {
    const { cert } = live.current;
    const key = await readFile(files.key, 'latin1');
    await writeFile(files.cert, 'broken');
    for (let i = 0; i < 5; i += 1) await live.check();
    expect(live.current.cert).toBe(cert);
    const errors = lines.filter(({ level }) => level >= 50);
    expect(errors).toMatchObject([{ reason: `tls.cert (${files.cert}) holds no certificate in PEM` }]);
    expect(JSON.stringify(lines)).not.toContain(key.split('\n')[1]);
    await authority.issue(node);
    await live.check();
    await live.check();
    expect(replacedCount).toBe(1);
  });

  it('of another node is not valid', async () => {
    const { cert } = live.current;
    const other = await authority.issue({ ...node, nodeId: 2 });
    await copyFile(other.key, files.key);
    await copyFile(other.cert, files.cert);
    await live.check({ isUrgent: true });
    expect(live.current.cert).toBe(cert);
    expect(lines.at(-1)?.reason).toMatch(/is for node 2, but this is node 1/);
  });
});

describe('a certificate that expires within thirty days', () => {
  it('is logged as a warning once a day', async () => {
    expect(warned()).toBe(0);
    nowMillis += 61 * DAY_MILLIS;
    await live.check();
    expect(warned()).toBe(1);
    await live.check();
    expect(warned()).toBe(1);
    nowMillis += DAY_MILLIS;
    await live.check();
    expect(warned()).toBe(2);
  });
});
