/**
 * Kills `quorate backup` and `quorate restore` at random moments, against a busy cluster of processes with TLS.
 * Each can be repeated, and then succeeds.
 *
 * `BACKUP_SEED=n` draws the same moments.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeFetch } from '../../src/cli/node-fetch.ts';
import { readCluster } from '../../src/config/cluster-directory.ts';
import type { Manifest } from '../../src/backup/manifest.ts';
import { ended, ROOT } from '../cli/command.ts';
import { eventually, freeBasePort, temporaryDirectory, TestCluster } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { seeded } from '../raft/seeded.ts';

const SEED = Number(process.env['BACKUP_SEED'] ?? Math.floor(Math.random() * 1e6));
const KILLS = 8;
const WINDOW_MILLIS = 4_000;
const CLI = join(ROOT, 'dist', 'src', 'cli', 'main.js');
const random = seeded(SEED);

/** Runs the command, and kills it after `millis` unless it has ended. Resolves with true if it was killed. */
async function killedAfter(millis: number, args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await Promise.race([gone, delay(millis)]);
  child.kill('SIGKILL');
  await gone;
  return child.signalCode === 'SIGKILL';
}

describe(`commands that are killed (BACKUP_SEED=${SEED})`, () => {
  let root = '';
  let cluster: TestCluster;
  let isAsking = true;
  let load: Promise<void>;
  let manifest: Manifest;
  let asked = 0;
  const exits: string[] = [];

  const url = (path: string): URL => new URL(path, `https://127.0.0.1:${cluster.port(1)}`);
  const backupArgs = (name: string): string[] => [
    'backup',
    '--json',
    `--out=${join(root, name)}`,
    `--node=https://127.0.0.1:${cluster.port(1)}`,
    `--ca=${join(cluster.directory, 'certs', 'ca.crt')}`,
  ];

  beforeAll(async () => {
    root = await temporaryDirectory();
    const rules = [{ id: 'default', limit: 5, windowMillis: WINDOW_MILLIS, clock: 'cluster' }] as const;
    cluster = await TestCluster.start({ rules, partitions: 4, tls: true });
    for (const id of cluster.ids)
      void cluster.exitOf(id).then(({ code, signal }) => exits.push(`node ${id}: ${signal ?? code}`));
    load = (async () => {
      while (isAsking) {
        const requests = Array.from({ length: 50 }, () => ({ userId: `user${random(20_000)}` }));
        const body = JSON.stringify({ requests });
        const headers = { 'content-type': 'application/json' };
        const signal = AbortSignal.timeout(30_000);
        try {
          const answer = await nodeFetch(url('/v1/allow/batch'), { method: 'POST', body, headers, signal });
          await answer.arrayBuffer();
          asked += 1;
        } catch {
          // Starting a command may stall this process for longer than a node waits for a request: it is sent again.
          await delay(100);
        }
      }
    })();
  });
  afterAll(async () => {
    isAsking = false;
    await load;
    await cluster.stop();
    await rm(root, { recursive: true, force: true });
  });

  it('backup: is none or complete after a kill, and complete when repeated', async () => {
    await eventually('there is something to back up', () => (asked > 100 ? true : undefined));
    const began = performance.now();
    const first = await ended('quorate', backupArgs('calm'), root);
    expect([first.code, first.said]).toEqual([0, '']);
    const takesMillis = performance.now() - began;
    let kills = 0;
    for (let i = 0; i < KILLS; i += 1) {
      if (existsSync(join(root, 'b', 'manifest.json'))) await rm(join(root, 'b'), { recursive: true });
      // Half of its duration is the start of the process.
      const wasKilled = await killedAfter(takesMillis * (0.4 + random(60) / 100), backupArgs('b'));
      kills += wasKilled ? 1 : 0;
      const checked = await ended('quorate', ['restore', '--from', join(root, 'b'), '--verify'], root);
      expect(checked.code).toBe(existsSync(join(root, 'b', 'manifest.json')) ? 0 : 1);
    }
    expect(kills).toBeGreaterThan(0);
    if (existsSync(join(root, 'b', 'manifest.json'))) await rm(join(root, 'b'), { recursive: true });
    const whole = await ended('quorate', backupArgs('b'), root);
    expect([whole.code, whole.said]).toEqual([0, '']);
    manifest = JSON.parse(whole.stdout) as Manifest;
    expect((await ended('quorate', backupArgs('b'), root)).said).toMatch(/holds a finished backup/);
    expect(exits).toEqual([]);
  });

  it('restore: makes no cluster or a complete one when killed, and one that runs when repeated', async () => {
    const basePort = String(await freeBasePort());
    const args = (data: string): string[] => [
      'restore',
      '--json',
      `--from=${join(root, 'b')}`,
      `--data=${data}`,
      `--base-port=${basePort}`,
    ];
    await mkdir(join(root, 'calm-data'));
    const began = performance.now();
    expect((await ended('quorate', args(join(root, 'calm-data')), root)).code).toBe(0);
    const takesMillis = performance.now() - began;
    const data = join(root, 'data');
    let kills = 0;
    for (let i = 0; i < KILLS; i += 1) {
      if ((await readCluster(data)) !== undefined) await rm(data, { recursive: true });
      kills += (await killedAfter(takesMillis * (0.3 + random(70) / 100), args(data))) ? 1 : 0;
      const node = await ended('quorate', ['node', '9', '--data', data], root);
      const isWhole = (await readCluster(data)) !== undefined;
      expect(node.said).toMatch(isWhole ? /none of the nodes/ : /holds no cluster.json|expected a directory/);
    }
    expect(kills).toBeGreaterThan(0);
    if ((await readCluster(data)) !== undefined) await rm(data, { recursive: true });
    const { code, stdout } = await ended('quorate', args(data), root);
    expect(code).toBe(0);
    const reported = JSON.parse(stdout) as { groups: { stateHash: string }[]; isSaturated: boolean };
    expect(reported.groups.map(({ stateHash }) => stateHash)).toEqual(
      manifest.groups.map(({ stateHash }) => stateHash),
    );
    expect(reported.isSaturated).toBe(true);
    const config = await readCluster(data);
    const restored = InProcessCluster.of(config!, data);
    const ranAt = performance.now();
    await restored.startAll();
    await eventually('it grants again', async () => {
      const answer = await restored.allow(1, { userId: 'user7' });
      return answer.kind === 'decision' && answer.decision.allowed ? true : undefined;
    });
    expect(performance.now() - ranAt).toBeGreaterThan(WINDOW_MILLIS);
    await restored.stop();
    expect(exits).toEqual([]);
  });
});
