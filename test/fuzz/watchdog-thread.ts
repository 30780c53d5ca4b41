/**
 * Thread of the watchdog. If an input takes too long, it records a finding and ends the process, because nothing else
 * can stop the parser.
 */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { Finding } from './execute.ts';
import { writeFinding } from './findings.ts';
import { TARGETS } from './targets/all.ts';
import { COUNT, HEAD_BYTES, LENGTH, TARGET } from './watchdog.ts';

/** Generous, because a busy machine may delay a process. */
const HANGS_MILLIS = 30_000;
const PEEKS = 6;

const memory = workerData as SharedArrayBuffer;
const head = new Int32Array(memory, 0, HEAD_BYTES / 4);
let count = 0;
let peeks = 0;

setInterval(() => {
  const now = Atomics.load(head, COUNT);
  peeks = now === count ? peeks + 1 : 0;
  count = now;
  const target = TARGETS[head[TARGET] ?? 0];
  if (peeks < PEEKS || now === 0 || target === undefined) return;
  const input = Buffer.from(new Uint8Array(memory, HEAD_BYTES, head[LENGTH]));
  const finding = new Finding(
    target,
    input,
    `the parser did not return for ${input.length} bytes within ${HANGS_MILLIS} ms`,
  );
  const path = writeFinding(finding);
  writeSync(
    1,
    `FINDING ${finding.message}\n  input: ${input.toString('hex')}\n  replay: npm run fuzz -- --replay ${path}\n`,
  );
  process.kill(process.pid, 'SIGKILL');
}, HANGS_MILLIS / PEEKS);
