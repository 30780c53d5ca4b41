/** What processes have used, as Linux tells in /proc. Elsewhere there is nothing to read, and nothing is claimed. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ProcessUsage {
  /** User and system time of all threads since the process began. */
  readonly cpuSeconds: number;
  /** Resident now; pages shared with others count for each. */
  readonly residentBytes: number;
}

/** Fields of /proc/PID/stat, counted from 1 as in proc(5), of which the first two are cut off here. */
const USER_TICKS_FIELD = 14;
const SYSTEM_TICKS_FIELD = 15;
const RESIDENT_PAGES_FIELD = 24;

interface Units {
  readonly ticksPerSecond: number;
  readonly pageBytes: number;
}

/**
 * Reads the one line of /proc/PID/stat. The name of the command stands in brackets and may hold anything, brackets and
 * spaces too, so that fields are counted from the last closing one.
 *
 * @throws RangeError if it is no such line
 */
export function parseStat(line: string, { ticksPerSecond, pageBytes }: Units): ProcessUsage {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => {
    const value = Number(fields[number - 3]);
    if (!Number.isSafeInteger(value)) throw new RangeError(`field ${number} of a stat line is no number`);
    return value;
  };
  return {
    cpuSeconds: (field(USER_TICKS_FIELD) + field(SYSTEM_TICKS_FIELD)) / ticksPerSecond,
    residentBytes: field(RESIDENT_PAGES_FIELD) * pageBytes,
  };
}

function configured(name: string): number {
  return Number(execFileSync('getconf', [name], { encoding: 'utf8' }));
}

let units: Units | undefined;

function usageOf(pid: number): ProcessUsage {
  units ??= { ticksPerSecond: configured('CLK_TCK'), pageBytes: configured('PAGESIZE') };
  return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'), units);
}

/** These and the processes that they have started, as far as the system tells. */
export function withChildren(pids: readonly number[]): number[] {
  return pids.flatMap((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
      return [pid, ...(text === '' ? [] : text.split(' ').map(Number))];
    } catch {
      return [pid];
    }
  });
}

/** Of all of them together; undefined where /proc is not Linux's, or one of them has ended. */
export function usageOfAll(pids: readonly number[]): ProcessUsage | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    let cpuSeconds = 0;
    let residentBytes = 0;
    for (const usage of pids.map(usageOf)) {
      cpuSeconds += usage.cpuSeconds;
      residentBytes += usage.residentBytes;
    }
    return { cpuSeconds, residentBytes };
  } catch {
    return undefined;
  }
}
