/** Tests that the logs of `npm start` stay below a number of bytes, also over restarts. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LOG_BYTES_MAX, logPathOf, maybeRotate } from '../../cluster/node-log.ts';
import { ClusterScript } from './cluster-script.ts';
import { eventually, temporaryDirectory } from './harness.ts';
import { quorate } from './nodes-command.ts';

const LINE = `${'x'.repeat(99)}\n`;

describe('a log that is too long', () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await temporaryDirectory();
    path = join(directory, 'node-1.log');
  });
  afterEach(async () => {
    await rm(directory, { recursive: true });
  });

  it('is not changed while it is within the bound', () => {
    writeFileSync(path, LINE.repeat(10));
    expect(maybeRotate(path, 1_000)).toBe(false);
    expect(statSync(path).size).toBe(1_000);
    expect(existsSync(`${path}.1`)).toBe(false);
  });

  it('moves its newest whole lines to a second file, of at most as many bytes', () => {
    writeFileSync(path, `${LINE.repeat(50)}last\n`);
    expect(maybeRotate(path, 1_000)).toBe(true);
    expect(statSync(path).size).toBe(0);
    expect(readFileSync(`${path}.1`, 'utf8')).toBe(`${LINE.repeat(9)}last\n`);
    writeFileSync(path, `${LINE.repeat(50)}later\n`);
    expect(maybeRotate(path, 1_000)).toBe(true);
    expect(readFileSync(`${path}.1`, 'utf8')).toMatch(/^x+\n[^]*later\n$/);
    expect(readFileSync(`${path}.1`, 'utf8')).not.toContain('last');
  });

  it('may be missing, and so may its folder', () => {
    expect(maybeRotate(join(directory, 'logs', 'node-1.log'), 1_000)).toBe(false);
  });
});

it('npm start shortens the logs of earlier starts and those of running nodes', async () => {
  const script = await ClusterScript.create();
  try {
    const at = ['--data', script.directory, '--nodes', '1', '--base-port', String(script.basePort)];
    await quorate('init', ...at);
    const path = logPathOf(script.directory, 1);
    mkdirSync(join(script.directory, 'logs'));
    writeFileSync(path, LINE.repeat((2 * LOG_BYTES_MAX) / LINE.length));
    const cluster = script.start();
    await cluster.says('Ctrl-C stops the cluster');
    expect(cluster.output).toContain('at most 16.0 MiB of logs a node');
    expect(statSync(path).size).toBeLessThan(LOG_BYTES_MAX);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(LOG_BYTES_MAX);
    expect(readFileSync(path, 'utf8')).toContain('node is up');

    appendFileSync(path, LINE.repeat(Math.ceil(LOG_BYTES_MAX / LINE.length)));
    await eventually('the log is short again', () =>
      statSync(path).size < LOG_BYTES_MAX ? true : undefined,
    );
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(LOG_BYTES_MAX);
    // The node keeps writing to the same file, which contains its last lines.
    const [pid = 0] = await script.pids(1);
    process.kill(pid, 'SIGTERM');
    await cluster.says('node 1 ended with exit code 0');
    expect(readFileSync(path, 'utf8')).toMatch(/"msg":"stopping"[^]*"msg":"stopped"/);
  } finally {
    await script.dispose();
  }
});
