/**
 * What all nodes counted, asked for again and again while a page shows it, and a peek at each key that is limited most. It draws
 * nothing.
 */
import { useEffect, useState } from 'preact/hooks';
import { USAGE_MINUTES_MAX, type UsageReport } from '../api/usage.ts';
import {
  type LimitedKey,
  limitedKeys,
  type Peeked,
  peekedIn,
  type Reading,
  withReading,
} from './limited-keys.ts';
import { type Answer, ask, messageOf } from './session.ts';

/** Keys that are shown, each with a peek: one question to a leader. */
export const KEYS_SHOWN = 8;
/** Of which those are chosen that are denied most just now. */
const KEYS_COMPARED = 100;
const AGAIN_MILLIS = 5_000;
/** Minutes from which on a report is long, and changes little in five seconds. */
const LONG_MINUTES = 360;
const AGAIN_LONG_MILLIS = 15_000;

export interface PeekedKey extends LimitedKey {
  readonly peeked: Peeked;
}

export interface Limits {
  /** Of the minutes that were asked for. */
  readonly report: UsageReport | undefined;
  /** Of twice as many, as far as they are kept. */
  readonly history: UsageReport['history'] | undefined;
  readonly keys: readonly PeekedKey[];
  /** Keys are not named to whoever looks. */
  readonly areKeysHidden: boolean;
  readonly failure: string;
}

const NOTHING: Limits = {
  report: undefined,
  history: undefined,
  keys: [],
  areKeysHidden: false,
  failure: '',
};

/** @param isLive nothing is asked while the node does not answer */
export function useLimits(minutes: number, isLive: boolean): Limits {
  const [limits, setLimits] = useState<Limits>(NOTHING);
  useEffect(() => {
    // What was counted over another time would be shown under this one's name.
    setLimits(({ keys, areKeysHidden }) => ({ ...NOTHING, keys, areKeysHidden }));
  }, [minutes]);
  useEffect(() => {
    if (!isLive) return undefined;
    const over = new AbortController();
    void watch(minutes, over.signal, setLimits);
    return () => over.abort();
  }, [minutes, isLive]);
  return limits;
}

/** Until it is over. */
async function watch(
  minutes: number,
  over: AbortSignal,
  changed: (next: (before: Limits) => Limits) => void,
): Promise<void> {
  let readings: readonly Reading[] = [];
  for (;;) {
    const { report, history, areKeysHidden, failure } = await read(minutes);
    if (over.aborted) return;
    if (report?.top !== undefined)
      readings = withReading(readings, { atMillis: performance.now(), denied: report.top.denied });
    const keys = await peekedAll(limitedKeys(readings, KEYS_SHOWN, KEYS_COMPARED));
    if (over.aborted) return;
    // What cannot be read anew is shown as it was, under the failure.
    changed((before) =>
      failure === '' ? { report, history, keys, areKeysHidden, failure } : { ...before, failure },
    );
    const waitMillis = minutes < LONG_MINUTES ? AGAIN_MILLIS : AGAIN_LONG_MILLIS;
    await new Promise((resolve) => setTimeout(resolve, waitMillis));
    if (over.aborted) return;
  }
}

async function read(minutes: number): Promise<Omit<Limits, 'keys'>> {
  const [first, compared] = await Promise.all([named(minutes), comparedHistory(minutes)]);
  const { answer, areKeysHidden } = first;
  if (answer.status !== 200) return { ...NOTHING, areKeysHidden, failure: messageOf(answer) };
  const report = answer.body as UsageReport;
  return { report, history: compared ?? report.history, areKeysHidden, failure: '' };
}

/** Keys are not named to everybody. */
async function named(minutes: number): Promise<{ readonly answer: Answer; readonly areKeysHidden: boolean }> {
  const query = `/v1/usage?minutes=${minutes}`;
  const withTop = await ask(`${query}&top=${KEYS_COMPARED}`);
  if (withTop.status !== 403) return { answer: withTop, areKeysHidden: false };
  return { answer: await ask(query), areKeysHidden: true };
}

/** Undefined where so much is not kept. */
async function comparedHistory(minutes: number): Promise<UsageReport['history'] | undefined> {
  if (2 * minutes > USAGE_MINUTES_MAX) return undefined;
  const { status, body } = await ask(`/v1/usage?minutes=${2 * minutes}`);
  return status === 200 ? (body as UsageReport).history : undefined;
}

async function peekedAll(keys: readonly LimitedKey[]): Promise<PeekedKey[]> {
  return Promise.all(
    keys.map(async (key) => {
      const { status, body } = await ask(`/v1/keys/${encodeURIComponent(key.key)}`);
      return { ...key, peeked: status === 200 ? peekedIn(body, key.rule) : ({ kind: 'unknown' } as const) };
    }),
  );
}
