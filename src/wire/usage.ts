/** The frames by which a node asks another for its usage figures (`usage`) and gets them (`usageReported`). */
import { isBoundedInteger, isBoundedText } from '../api/bounded.ts';
import { KEY_BYTES_MAX, RULE_ID_BYTES_MAX } from '../api/request.ts';
import {
  type TopKey,
  USAGE_MINUTES_MAX,
  USAGE_COLUMNS,
  USAGE_TOP_MAX,
  type UsageQuery,
} from '../api/usage.ts';
import type { NodeUsage } from '../usage/node-usage.ts';
import type { TopList } from '../usage/top-keys.ts';
import { array, Fields, integer, pack, unpack } from './fields.ts';
import { FrameError } from './frame.ts';

const WIDTH = USAGE_COLUMNS.length;
/** Steps must fit into a byte. */
const LATE_MAX = 255;

/** A question for usage figures. */
export interface UsageQuestion {
  /** Correlation id; the answer repeats it. */
  readonly id: number;
  readonly query: UsageQuery;
  /** The last of the minutes asked for, counted since 1970. */
  readonly untilMinute: number;
}

/** The answer to a question. */
export interface UsageReported {
  readonly id: number;
  readonly usage: NodeUsage;
}

/** Encodes a question. */
export function encodeUsageQuestion({ id, query, untilMinute }: UsageQuestion): Buffer {
  return pack([id, query.minutes, query.ruleId, query.top, untilMinute]);
}

/** Decodes a question. @throws FrameError if it is malformed */
export function decodeUsageQuestion(payload: Uint8Array): UsageQuestion {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const minutes = fields.integer('minutes');
  const ruleId = fields.optionalString('rule');
  const top = fields.integer('top');
  const untilMinute = fields.integer('until minute');
  if (!isBoundedInteger(minutes, 1, USAGE_MINUTES_MAX)) throw new FrameError('minutes are out of bounds');
  if (top > USAGE_TOP_MAX) throw new FrameError('top is out of bounds');
  return { id, query: { minutes, ruleId, top }, untilMinute };
}

/** Encodes an answer. */
export function encodeUsageReport({ id, usage }: UsageReported): Buffer {
  const { rules, history, topFromMinute, allowed, denied, late } = usage;
  return pack([
    id,
    rules.map(({ ruleId, counts }) => [ruleId, counts]),
    history,
    topFromMinute,
    ...[allowed, denied].map(({ keys, othersMax }) => [
      othersMax,
      keys.map(({ rule, key, count, error }) => [rule, key, count, error]),
    ]),
    ...(late === undefined ? [] : [late]),
  ]);
}

/** Decodes an answer. @throws FrameError if it is malformed */
export function decodeUsageReport(payload: Uint8Array): UsageReported {
  const fields = new Fields(unpack(payload));
  const id = fields.integer('id');
  const rules = array(fields.next('rules'), 'rules').map((value) => {
    const rule = new Fields(value);
    const ruleId = bounded(rule.string('rule'), RULE_ID_BYTES_MAX, 'rule');
    return { ruleId, counts: columns(rule.integers('counts'), 1) };
  });
  const history = fields.integers('history');
  const usage = {
    rules,
    history: columns(history, history.length / WIDTH),
    topFromMinute: fields.integer('top minute'),
    allowed: topList(fields.next('allowed')),
    denied: topList(fields.next('denied')),
  };
  return { id, usage: fields.isAtEnd ? usage : { ...usage, late: lateIn(fields.integers('late'), history) } };
}

function lateIn(late: number[], history: readonly number[]): number[] {
  if (late.length !== history.length / WIDTH || late.some((step) => step > LATE_MAX))
    throw new FrameError('late must have one step for each minute');
  return late;
}

function topList(value: unknown): TopList {
  const fields = new Fields(value);
  const othersMax = fields.integer('others');
  return { othersMax, keys: array(fields.next('keys'), 'keys').map(topKey) };
}

function topKey(value: unknown): TopKey {
  const fields = new Fields(value);
  return {
    rule: bounded(fields.string('rule'), RULE_ID_BYTES_MAX, 'rule'),
    key: bounded(fields.string('key'), KEY_BYTES_MAX, 'key'),
    count: integer(fields.next('count'), 'count'),
    error: integer(fields.next('error'), 'error'),
  };
}

function bounded(text: string, bytesMax: number, name: string): string {
  if (!isBoundedText(text, bytesMax)) throw new FrameError(`${name} is not text of 1 to ${bytesMax} bytes`);
  return text;
}

/** Checks the counts of this many minutes. */
function columns(counts: number[], minutes: number): number[] {
  if (counts.length !== minutes * WIDTH || !isBoundedInteger(minutes, 1, USAGE_MINUTES_MAX))
    throw new FrameError('the number of counts does not match the columns');
  return counts;
}
