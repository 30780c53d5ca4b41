/** Decodes answers as a client would. Written from the specification; it uses no code of the listener. */

/** An error is `{ error }`, a RESP3 map or set one of JavaScript. */
export type Decoded =
  | string
  | number
  | null
  | { readonly error: string }
  | Decoded[]
  | Map<Decoded, Decoded>
  | Set<Decoded>;

/** All complete answers in `bytes`. @throws Error if they are malformed */
export function decodeReplies(bytes: Buffer): Decoded[] {
  const replies: Decoded[] = [];
  let at = 0;
  for (;;) {
    const next = decode(bytes, at);
    if (next === undefined) return replies;
    replies.push(next.value);
    at = next.end;
  }
}

interface Read {
  readonly value: Decoded;
  readonly end: number;
}

function decode(bytes: Buffer, at: number): Read | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString('utf8', at + 1, lineEnd);
  const end = lineEnd + 2;
  const type = String.fromCharCode(bytes[at] ?? 0);
  switch (type) {
    case '+':
      return { value: line, end };
    case '-':
      return { value: { error: line }, end };
    case ':':
      return { value: Number(line), end };
    case '_':
      return { value: null, end };
    case '$': {
      if (line === '-1') return { value: null, end };
      const bulkEnd = end + Number(line);
      if (bulkEnd + 2 > bytes.length) return undefined;
      if (bytes.toString('latin1', bulkEnd, bulkEnd + 2) !== '\r\n')
        throw new Error('a bulk string has no end');
      return { value: bytes.toString('utf8', end, bulkEnd), end: bulkEnd + 2 };
    }
    case '*':
    case '~':
    case '>':
    case '%': {
      const items = decodeMany(bytes, end, Number(line) * (type === '%' ? 2 : 1));
      if (items === undefined) return undefined;
      return { value: collected(type, items.values), end: items.end };
    }
    default:
      throw new Error(`unknown type of an answer: ${JSON.stringify(type)}`);
  }
}

function decodeMany(
  bytes: Buffer,
  start: number,
  count: number,
): { readonly values: Decoded[]; readonly end: number } | undefined {
  const values: Decoded[] = [];
  let end = start;
  for (let i = 0; i < count; i += 1) {
    const next = decode(bytes, end);
    if (next === undefined) return undefined;
    values.push(next.value);
    end = next.end;
  }
  return { values, end };
}

function collected(type: string, values: Decoded[]): Decoded {
  if (type === '*' || type === '>') return values;
  if (type === '~') return new Set(values);
  return new Map(
    values.flatMap((value, i) => (i % 2 === 0 ? [[value, values[i + 1] ?? null] as const] : [])),
  );
}
