/** Reads the processor time and memory of processes from /proc. On systems other than Linux it returns nothing. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface ProcessUsage {
  /** User and system time of all threads since the process began. */
  readonly cpuSeconds: number;
  /** Resident memory now. Shared pages count for each process. */
  readonly residentBytes: number;
}

/** Field numbers of /proc/PID/stat, counted from 1 as in proc(5). */
const USER_TICKS_FIELD = 14;
const SYSTEM_TICKS_FIELD = 15;
const RESIDENT_PAGES_FIELD = 24;

interface Units {
  readonly ticksPerSecond: number;
  readonly pageBytes: number;
}

/**
 * Parses /proc/PID/stat. The command name is in brackets and may itself contain brackets and spaces, so fields are
 * counted from the last closing bracket.
 *
 * @throws RangeError if the line has another form
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

/** Adds the child processes, if the system lists them. */
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

/** Sums the usage of processes; undefined without /proc, or if one of them has ended. */
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
