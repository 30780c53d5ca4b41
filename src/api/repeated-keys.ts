/**
 * Finds keys that a JSON object contains more than once. `JSON.parse` keeps the last of them, other parsers keep the
 * first. A gateway that checks a body and the node that reads it would then see two different requests.
 */

/** Names and indexes from the outermost value inwards, such as `['requests', 1, 'cost']`. */
export type JsonPath = readonly (string | number)[];

/** A longer path is cut: it then names an outer object instead of the key. */
const STEPS_MAX = 8;
const NONE: readonly JsonPath[] = [];
const SHOWN_CHARACTERS_MAX = 64;
const SIGNS_AND_STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]/gs;

const SPACE = 0x20;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

interface Open {
  /** The keys of an object so far; undefined for an array. */
  readonly keys: Set<string> | undefined;
  step: string | number;
}

/**
 * Finds the repeated keys of a JSON text.
 *
 * @param text a text that `JSON.parse` has accepted
 * @param value the value that `JSON.parse` returned for it
 * @returns the path of each repeated key, in the order of the text. If a key is deeper than `STEPS_MAX`, only the
 *   outer part of its path.
 */
export function repeatedKeysIn(text: string, value: unknown): readonly JsonPath[] {
  // Fast path, because every request body is checked: if the value has as many keys as the text, none was repeated.
  return keysWritten(text) === keysIn(value) ? NONE : scanned(text);
}

/** A path as text, such as `requests[1].cost`. */
export function pathText(path: JsonPath): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`))
    .join('')
    .slice(0, SHOWN_CHARACTERS_MAX);
}

/** Counts the strings in a JSON text that are followed by a colon. */
function keysWritten(text: string): number {
  let count = 0;
  let end = -1;
  for (let start = text.indexOf('"'); start !== -1; start = text.indexOf('"', end + 1)) {
    end = endOfString(text, start);
    let next = end + 1;
    while (text.charCodeAt(next) <= SPACE) next += 1;
    if (text.charCodeAt(next) === COLON) count += 1;
  }
  return count;
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
}

/** Counts the keys of all objects in a value, however deep. */
function keysIn(value: unknown): number {
  const open = [value];
  let count = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const inside: readonly unknown[] = Object.values(next);
    if (!Array.isArray(next)) count += inside.length;
    for (const each of inside) if (typeof each === 'object' && each !== null) open.push(each);
  }
  return count;
}

function scanned(text: string): readonly JsonPath[] {
  const repeated: JsonPath[] = [];
  const open: Open[] = [];
  let string = '""';
  for (const [token] of text.matchAll(SIGNS_AND_STRINGS)) {
    const innermost = open.at(-1);
    switch (token) {
      case '{':
        open.push({ keys: new Set(), step: '' });
        break;
      case '[':
        open.push({ keys: undefined, step: 0 });
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ',':
        if (typeof innermost?.step === 'number') innermost.step += 1;
        break;
      case ':': {
        if (innermost?.keys === undefined) break;
        // Two texts of the same key may be escaped differently.
        const key = JSON.parse(string) as string;
        innermost.step = key;
        if (innermost.keys.has(key)) repeated.push(open.slice(0, STEPS_MAX).map(({ step }) => step));
        innermost.keys.add(key);
        break;
      }
      default:
        string = token;
    }
  }
  return repeated;
}
