/**
 * Bounds the number of parts (descriptors, entries) in the bytes of a `RateLimitRequest`. Decoding a part takes much
 * longer than sending its two bytes, so the parts are counted before anything is decoded, and counting stops at the
 * first one too many. The decoder would misread a field with a wrong wire type and find other parts than were
 * counted, so such bytes are refused.
 */
import protobuf from 'protobufjs';
import { LIST_ENTRIES_MAX, LISTS_MAX } from '../api/listed.ts';

/** A number, a text, or nested messages with their name and their bound. */
type Field = 'number' | 'text' | { readonly name: string; readonly max: number; readonly each: Message };
/** The fields of a message, by field number. */
type Message = ReadonlyMap<number, Field>;

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const WIRE_TYPES = 8;
/** The most other fields in one message. Later versions of the protocol may have some that are not known here. */
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

/**
 * The error if there are too many parts: their name and their bound. Undefined if there are not. @throws Error if the
 * bytes are no message
 */
export function tooManyParts(bytes: Uint8Array): string | undefined {
  return tooManyIn(bytes, REQUEST, '');
}

/** @param path the path of the message, ending with a dot */
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
