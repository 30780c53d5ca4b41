/**
 * Runs Prometheus with the files of this repository against three containers: every panel of the Grafana dashboard must
 * have data, and an alert must report a dead node. Skipped if Prometheus is not installed.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../cli/command.ts';
import { eventually, freePorts } from '../cluster/harness.ts';
import { programOf } from '../gateways/gateway.ts';
import { Pods } from './pods.ts';

const prometheus = programOf('prometheus', 'PROMETHEUS');
const promtool = programOf('promtool', 'PROMTOOL');
if (prometheus === undefined) console.log('skipped: there is no prometheus here, nor its path in PROMETHEUS');

const ADDRESSES = ['127.0.2.2', '127.0.2.3', '127.0.2.4'];
/** Prometheus draws rates over at least four scrapes. */
const RATE_INTERVAL = '10s';
const PAUSE_MILLIS = 50;
const USERS = 20;
/** Panels that may be NaN: a quantile without any observation. */
const MAY_BE_EMPTY = ['Duration of a snapshot, p99'];

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

function fileOf(...path: readonly string[]): string {
  return readFileSync(join(ROOT, 'cluster', ...path), 'utf8');
}

const dashboard = JSON.parse(fileOf('observability', 'dashboard.json')) as {
  readonly panels: readonly Panel[];
};
const drawn = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

describe.skipIf(prometheus === undefined)('Prometheus beside three containers', () => {
  let pods: Pods;
  let child: ChildProcess;
  let origin: string;
  let job: string;
  let isOver = false;
  let load: Promise<void>;

  beforeAll(async () => {
    pods = await Pods.create();
    for (const [ordinal, address] of ADDRESSES.entries()) await pods.start(ordinal, address);
    await pods.ready(ADDRESSES.map((_, ordinal) => ordinal));
    load = ask();
    const [port = 0] = await freePorts(1);
    origin = `http://127.0.0.1:${port}`;
    const directory = join(pods.directory, 'prometheus');
    await mkdir(directory, { recursive: true });
    const alerts = join(ROOT, 'cluster', 'observability', 'alerts.yaml');
    let text = fileOf('docker', 'prometheus.yml').replace('/etc/prometheus/alerts.yaml', alerts);
    for (const [ordinal, address] of ADDRESSES.entries())
      text = text.replace(`node-${ordinal}:8100`, `${address}:${pods.ports.http}`);
    text = text.replaceAll('interval: 5s', 'interval: 1s');
    const [{ job_name: name } = { job_name: '' }] = (
      parse(text) as { readonly scrape_configs: readonly { readonly job_name: string }[] }
    ).scrape_configs;
    job = name;
    await writeFile(join(directory, 'prometheus.yml'), text);
    child = spawn(
      prometheus ?? '',
      [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(directory, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    await eventually('Prometheus answers', async () =>
      fetch(`${origin}/-/ready`).then(
        ({ ok }) => ok || undefined,
        () => undefined,
      ),
    );
  });

  afterAll(async () => {
    isOver = true;
    await load;
    child.kill('SIGKILL');
    await pods.stopAll();
  });

  /** Sends requests through both listeners until the test is over. */
  async function ask(): Promise<void> {
    const redis = new Redis(pods.ports.resp, ADDRESSES[0] ?? '', { retryStrategy: () => 500 });
    redis.on('error', () => {});
    for (let i = 0; !isOver; i += 1) {
      const userId = `user-${i % USERS}`;
      await pods.ask(i % 2, '/v1/allow', { userId }).catch(() => undefined);
      await redis.call('ALLOW', userId).catch(() => undefined);
      await delay(PAUSE_MILLIS);
    }
    redis.disconnect();
  }

  async function asked<T>(path: string): Promise<T> {
    const response = await fetch(`${origin}/api/v1/${path}`);
    const { data } = (await response.json()) as { readonly data: T };
    return data;
  }

  async function valuesOf(expr: string): Promise<number> {
    const query = expr
      .replaceAll('$job', job)
      .replaceAll('$instance', '.+')
      .replaceAll('$__rate_interval', RATE_INTERVAL);
    const data = await asked<{ readonly result?: readonly { readonly value: readonly unknown[] }[] }>(
      `query?query=${encodeURIComponent(query)}`,
    );
    return (data?.result ?? []).filter(({ value }) => Number.isFinite(Number(value[1]))).length;
  }

  it.skipIf(promtool === undefined)('accepts its files', () => {
    const alerts = join(ROOT, 'cluster', 'observability', 'alerts.yaml');
    expect(execFileSync(promtool ?? '', ['check', 'rules', alerts], { encoding: 'utf8' })).toContain(
      'SUCCESS',
    );
  });

  it('scrapes all containers', async () => {
    const up = await eventually('nodes are up', async () => {
      const count = await valuesOf('up{job="$job"} == 1');
      return count >= ADDRESSES.length ? count : undefined;
    });
    expect(up).toBe(ADDRESSES.length);
  });

  it.each(drawn)('has data for: $title: $expr', async ({ title, expr }) => {
    if (MAY_BE_EMPTY.includes(title)) return;
    const series = await eventually('there is data', async () => (await valuesOf(expr)) || undefined);
    expect(series).toBeGreaterThan(0);
  });

  it('can compute every alert, and reports a node that is down', async () => {
    const { groups } = await asked<{
      readonly groups: readonly {
        readonly rules: readonly { readonly name: string; readonly health: string }[];
      }[];
    }>('rules');
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.filter(({ health }) => health === 'err')).toEqual([]);
    await pods.stop(2, 'SIGKILL');
    await eventually('QuorateNodeDown is pending', async () => {
      const { alerts } = await asked<{
        readonly alerts: readonly { readonly labels: Readonly<Record<string, string>> }[];
      }>('alerts');
      const down = alerts.find(({ labels }) => labels['alertname'] === 'QuorateNodeDown');
      return down?.labels['instance'] === `${ADDRESSES[2]}:${pods.ports.http}` ? true : undefined;
    });
  });
});
