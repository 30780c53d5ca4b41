/**
 * How many parts the bytes of a `RateLimitRequest` may have. To read one takes much longer than to send its two bytes, so they are
 * counted before anything is read, and no further than to the first that is too many. The decoder takes a field of another wire
 * type than its own for what it is not, and would find other parts than were counted: such bytes are no message.
 */
import protobuf from 'protobufjs';
import { LIST_ENTRIES_MAX, LISTS_MAX } from '../api/listed.ts';

/** A number, a text, or messages: how many there may be in one message, and what they are called. */
type Field = 'number' | 'text' | { readonly name: string; readonly max: number; readonly each: Message };
/** By the number of the field. */
type Message = ReadonlyMap<number, Field>;

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const WIRE_TYPES = 8;
/** Of one message, beside those that may be there more than once: a later version may have some that are not known here. */
const OTHERS_MAX = 8;

function message(...fields: readonly Field[]): Message {
  return new Map(fields.map((field, i) => [i + 1, field]));
}

const ENTRY = message('text', 'text');
const OVERRIDE = message('number', 'number');
const HITS = message('number');
const DESCRIPTOR = message(
  { name: 'entries', max: LIST_ENTRIES_MAX, each: ENTRY },
  { name: 'limit', max: 1, each: OVERRIDE },
  { name: 'hits_addend', max: 1, each: HITS },
  'number',
);
const REQUEST = message('text', { name: 'descriptors', max: LISTS_MAX, each: DESCRIPTOR }, 'number');

/** What is too many, and how many there may be. @throws Error if the bytes are no message */
export function tooManyParts(bytes: Uint8Array): string | undefined {
  return tooManyIn(bytes, REQUEST, '');
}

/** @param path of the message, with a dot behind it */
function tooManyIn(bytes: Uint8Array, fields: Message, path: string): string | undefined {
  const reader = protobuf.Reader.create(bytes);
  const counts = new Map<Field, number>();
  let others = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const wireType = tag % WIRE_TYPES;
    const field = fields.get((tag - wireType) / WIRE_TYPES);
    const own = field === 'number' ? VARINT : LENGTH_DELIMITED;
    if (field !== undefined && wireType !== own) throw new RangeError(`a field of wire type ${wireType}`);
    if (typeof field === 'object') {
      const count = counts.get(field) ?? 0;
      const name = `${path}${field.name}`;
      if (count === field.max) return `${name} must be at most ${field.max}`;
      counts.set(field, count + 1);
      const tooMany = tooManyIn(reader.bytes(), field.each, `${name}[${count}].`);
      if (tooMany !== undefined) return tooMany;
      continue;
    }
    others += 1;
    if (others > OTHERS_MAX) return `${path}fields must be at most ${OTHERS_MAX}`;
    reader.skipType(wireType);
  }
  return undefined;
}
