/**
 * Polls the usage figures of all nodes while a page shows them, and peeks at each key that is denied most. It draws
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

/** Keys shown. Each costs one peek, which is one request to a leader. */
export const KEYS_SHOWN = 8;
/** Keys read each time, from which the shown ones are chosen. */
const KEYS_COMPARED = 100;
const AGAIN_MILLIS = 5_000;
/** From this range on, a report is long and changes slowly, so it is read less often. */
const LONG_MINUTES = 360;
const AGAIN_LONG_MILLIS = 15_000;

/** A denied key together with the answer of a peek at it. */
export interface PeekedKey extends LimitedKey {
  readonly peeked: Peeked;
}

/** The usage figures that the overview shows. */
export interface Limits {
  /** Covers the chosen minutes. */
  readonly report: UsageReport | undefined;
  /** Covers twice as many minutes, if nodes keep that many. */
  readonly history: UsageReport['history'] | undefined;
  readonly keys: readonly PeekedKey[];
  /** The node does not show keys to this viewer. */
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

/**
 * Polls the figures of the last minutes.
 *
 * @param isLive false stops the polling: the node does not answer
 */
export function useLimits(minutes: number, isLive: boolean): Limits {
  const [limits, setLimits] = useState<Limits>(NOTHING);
  useEffect(() => {
    // Otherwise the counts of the old range would show under the new range's name.
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

/** Polls until the signal aborts. */
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
    // After a failed read the old figures stay, below the error.
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

/** Reads usage with keys, or without them if this viewer may not see keys. */
async function named(minutes: number): Promise<{ readonly answer: Answer; readonly areKeysHidden: boolean }> {
  const query = `/v1/usage?minutes=${minutes}`;
  const withTop = await ask(`${query}&top=${KEYS_COMPARED}`);
  if (withTop.status !== 403) return { answer: withTop, areKeysHidden: false };
  return { answer: await ask(query), areKeysHidden: true };
}

/** The history of twice the minutes; undefined if nodes do not keep that many. */
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
