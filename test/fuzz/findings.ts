/** Stores findings as files with the target, what happened and the input. Every `npm test` tries them again. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from './execute.ts';

export const FINDINGS_DIRECTORY = 'test/fuzz/findings';
const EXTENSION = '.txt';
const LINE_CHARACTERS = 100;

/** An input that was a finding once. */
export interface Case {
  readonly target: string;
  /** What the parser did wrong. */
  readonly what: string;
  readonly input: Buffer;
}

/** Writes a finding as lines: the target, what happened, and the input in hex. @returns its path */
export function writeFinding({ target, message, input }: Finding, directory = FINDINGS_DIRECTORY): string {
  const hash = createHash('sha256').update(input).digest('hex').slice(0, 8);
  const path = join(directory, `${target}-${hash}${EXTENSION}`);
  const lines = input.toString('hex').match(new RegExp(`.{1,${LINE_CHARACTERS}}`, 'g')) ?? [];
  const what = message.replaceAll(/\s+/g, ' ').slice(0, LINE_CHARACTERS);
  mkdirSync(directory, { recursive: true });
  writeFileSync(path, `${[target, what, ...lines].join('\n')}\n`);
  return path;
}

/** Reads a finding. @throws RangeError if the file is not one */
export function readFinding(path: string): Case {
  const [target = '', what = '', ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
  const hex = lines.join('');
  if (!/^([0-9a-f]{2})*$/.test(hex)) throw new RangeError(`${path} must hold a target, what it did, and hex`);
  return { target, what, input: Buffer.from(hex, 'hex') };
}

export function findingFiles(directory = FINDINGS_DIRECTORY): string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith(EXTENSION));
  return names.sort().map((name) => join(directory, name));
}
