/**
 * Searches the log output of the nodes for signs of trouble: errors, unhandled rejections, stack traces, leaks, and
 * unexpected exits. It knows the format of pino's lines and nothing about the product.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type NemesisBand, overlaps } from '../nemesis-log.ts';
import { type CheckResult, Findings } from './result.ts';

export interface NodeLog {
  readonly node: number;
  readonly path: string;
}

export interface NodeExit {
  readonly node: number;
  readonly code: number | null;
  readonly signal: string | null;
  readonly atNanos: number;
}

export interface LogOptions {
  readonly exits: readonly NodeExit[];
  readonly bands: readonly NemesisBand[];
  /** Lines that match one of these were provoked: for example a node must complain about a full disk. */
  readonly expected: readonly RegExp[];
}

/** pino: 50 is error, 60 is fatal. */
const ERROR_LEVEL = 50;
const LINE_REPORTED_MAX = 300;
/** An exit is noticed a little after its cause. */
const EXIT_NOTICED_NANOS = 2e9;

/** Faults that end a process. A pause or a lost network ends none. */
const ENDS_PROCESSES = /kill|stop|restart|crash|disk|upgrade|remove/i;

const SYMPTOMS: readonly (readonly [string, RegExp])[] = [
  ['unhandled rejection', /unhandled ?(promise ?)?rejection|ERR_UNHANDLED_REJECTION/i],
  ['uncaught exception', /uncaught ?exception|triggerUncaughtException|^Uncaught /i],
  ['leak', /MaxListenersExceededWarning|possible .*leak|memory leak/i],
  ['out of memory', /heap out of memory|FATAL ERROR|allocation failed/i],
  ['crash', /segmentation fault|core dumped|Aborted|^Node\.js v\d/i],
  ['stack trace', /^\s+at .+[:)]\d*|^\w*Error(:| \[)/],
];

export async function checkLogs(logs: readonly NodeLog[], options: LogOptions): Promise<CheckResult> {
  const findings = new Findings('logs');
  for (const { node, path } of logs) {
    const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
    for await (const line of lines) {
      findings.tally('lines');
      const symptom = symptomOf(line);
      if (symptom === undefined) continue;
      if (options.expected.some((pattern) => pattern.test(line))) findings.tally('expected');
      else findings.add(`node ${node}: ${symptom}: ${line.slice(0, LINE_REPORTED_MAX)}`);
    }
  }
  for (const exit of options.exits) {
    findings.tally('exits');
    if (!isCaused(exit, options.bands)) {
      findings.add(`node ${exit.node} exited by itself: code ${exit.code}, signal ${exit.signal}`);
    }
  }
  return findings.result();
}

/** The symptom in one log line; undefined if there is none. */
export function symptomOf(line: string): string | undefined {
  const fields = parsed(line);
  if (fields === undefined) return SYMPTOMS.find(([, pattern]) => pattern.test(line))?.[0];
  const { level } = fields;
  if (typeof level === 'number' && level >= ERROR_LEVEL)
    return level === ERROR_LEVEL ? 'error' : 'fatal error';
  // A stack trace inside a warning is information. The other symptoms are wrong at any level.
  return SYMPTOMS.find(([name, pattern]) => name !== 'stack trace' && pattern.test(line))?.[0];
}

function parsed(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** A fault that ends processes was active on the node, or had just been. */
function isCaused({ node, atNanos }: NodeExit, bands: readonly NemesisBand[]): boolean {
  return bands.some(
    (band) =>
      ENDS_PROCESSES.test(band.kind) &&
      (band.nodes.length === 0 || band.nodes.includes(node)) &&
      overlaps(band, atNanos - EXIT_NOTICED_NANOS, atNanos),
  );
}
