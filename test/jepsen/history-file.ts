/**
 * A history on disk: JSON lines, written as events happen and read back as a whole. A history of more than `EVENTS_MAX`
 * lines is refused rather than read in part. Judges nothing.
 */
import { closeSync, createReadStream, openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Backup, backupIn, encodeBackup } from './backup-history.ts';
import { Line } from './history-line.ts';
import { decodeOperation, encodeOperation, fieldsOf, HistoryError, type Operation } from './history.ts';
import {
  decodeJoint,
  encodeJoint,
  type JointEvent,
  type JointHistory,
  jointHistory,
} from './joint-history.ts';

export const EVENTS_MAX = 2_000_000;

export interface Recorded {
  readonly history: readonly Operation[];
  readonly joint: JointHistory;
  readonly backups: readonly Backup[];
}

/**
 * Reads a recorded history line by line. Lines without an `op` are single requests.
 *
 * @throws HistoryError for a bad line or more than `EVENTS_MAX` of them
 */
export async function readHistory(path: string): Promise<Recorded> {
  const history: Operation[] = [];
  const events: JointEvent[] = [];
  const backups: Backup[] = [];
  // A million operations have few users and rules, so each string is kept once.
  const texts = new Map<string, string>();
  const once = (text: string): string => {
    const known = texts.get(text);
    if (known !== undefined) return known;
    texts.set(text, text);
    return text;
  };
  let lineNumber = 0;
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    lineNumber += 1;
    if (line === '') continue;
    if (history.length + events.length + backups.length === EVENTS_MAX)
      throw new HistoryError(`more than ${EVENTS_MAX} lines`);
    const value = parsed(line, lineNumber);
    const { op } = fieldsOf(value);
    if (op === 'backup') {
      backups.push(backupIn(new Line(value, lineNumber)));
      continue;
    }
    if (op !== undefined) {
      events.push(decodeJoint(value, lineNumber));
      continue;
    }
    const operation = decodeOperation(value, lineNumber);
    history.push({ ...operation, user: once(operation.user), rule: once(operation.rule) });
  }
  return { history, joint: jointHistory(events), backups };
}

function parsed(line: string, lineNumber: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new HistoryError(`line ${lineNumber} is not JSON`);
  }
}

function encoded(event: Operation | JointEvent | Backup): string {
  if (!('op' in event)) return encodeOperation(event);
  return event.op === 'backup' ? encodeBackup(event) : encodeJoint(event);
}

const BUFFER_CHARS_MAX = 64 * 1024;

/**
 * Writes a history as it happens. It keeps at most one buffer in memory and writes it synchronously, so clients cannot
 * record faster than the disk writes.
 */
export class HistoryWriter {
  readonly #file: number;
  #buffer = '';
  count = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'w');
  }

  append(event: Operation | JointEvent | Backup): void {
    this.#buffer += `${encoded(event)}\n`;
    this.count += 1;
    if (this.#buffer.length >= BUFFER_CHARS_MAX) this.#flush();
  }

  close(): void {
    this.#flush();
    closeSync(this.#file);
  }

  #flush(): void {
    let bytes: Uint8Array = Buffer.from(this.#buffer);
    this.#buffer = '';
    while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#file, bytes));
  }
}
