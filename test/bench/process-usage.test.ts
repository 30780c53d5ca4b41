/** Tests reading processor time and memory of processes from /proc. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { parseStat, usageOfAll, withChildren } from '../../bench/process-usage.ts';

const UNITS = { ticksPerSecond: 100, pageBytes: 4_096 };

/** A line in which each field holds its own number, except the given ones. */
function statLine(command: string, fields: Readonly<Record<number, number>>): string {
  const rest = Array.from({ length: 50 }, (_, i) => (i === 0 ? 'S' : String(fields[i + 3] ?? i + 3)));
  return `4711 (${command}) ${rest.join(' ')}\n`;
}

describe('the usage of processes', () => {
  test('is user and system time in seconds, and resident pages in bytes', () => {
    const usage = parseStat(statLine('node', { 14: 250, 15: 50, 24: 10 }), UNITS);
    expect(usage).toEqual({ cpuSeconds: 3, residentBytes: 40_960 });
  });

  test.each(['a b', 'x) S 1 2 3', '((', ') ('])('is read after the command name %j', (command) => {
    expect(parseStat(statLine(command, { 14: 100, 15: 0, 24: 1 }), UNITS)).toEqual({
      cpuSeconds: 1,
      residentBytes: 4_096,
    });
  });

  test('refuses a malformed line', () => {
    expect(() => parseStat('nothing', UNITS)).toThrow(RangeError);
  });

  test.skipIf(process.platform !== 'linux')(
    'counts this process, and nothing for one that has ended',
    async () => {
      const own = usageOfAll([process.pid]);
      expect(own?.residentBytes).toBeGreaterThan(1_000_000);
      const child = spawn(process.execPath, ['-e', '']);
      await once(child, 'exit');
      expect(usageOfAll([process.pid, child.pid ?? 0])).toBeUndefined();
    },
  );

  test.skipIf(process.platform !== 'linux')('may include the child processes', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()']);
    expect(withChildren([process.pid])).toContain(child.pid);
    child.stdin.end();
    await once(child, 'exit');
    expect(withChildren([child.pid ?? 0])).toEqual([child.pid]);
  });
});
