/** Tests that the processes and directories of a bench end with it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Running } from '../../bench/running.ts';

const FOR_EVER = ['-e', 'setInterval(() => {}, 1000); process.send("runs")'];
const STUBBORN = ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); process.send("runs")'];

async function started(running: Running, args: readonly string[]) {
  const child = running.add(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] }));
  await once(child, 'message');
  return child;
}

describe('the processes and directories of a bench', () => {
  test('end at once', async () => {
    const running = new Running();
    const directory = running.directory('test');
    writeFileSync(join(directory, 'file'), 'text');
    const children = [await started(running, FOR_EVER), await started(running, STUBBORN)];
    const exits = Promise.all(children.map(async (child) => once(child, 'exit')));
    running.endAll();
    expect(await exits).toEqual([
      [null, 'SIGKILL'],
      [null, 'SIGKILL'],
    ]);
    expect(existsSync(directory)).toBe(false);
  });

  test('get a request to end before they are killed', async () => {
    const running = new Running();
    const child = await started(running, FOR_EVER);
    await running.stop(child);
    expect(child.signalCode).toBe('SIGTERM');
    // Stopping twice is allowed.
    await running.stop(child);
  });
});
