/**
 * Attacks on the HTTP listener with raw bytes: requests hidden in others, overlong requests, and bytes that are not
 * HTTP. The attacker has a token of role decide and wants the rights of an admin.
 */
import type { Attack, Outcome } from './attack.ts';
import { crowd, type Intruder, sayOnce } from './sockets.ts';
import type { Target } from './target.ts';

const QUIET_MILLIS = 300;
const HIDDEN_BODY = '{"role":"admin","name":"smuggled"}';
/** A second request without a token, as if a proxy had forwarded it behind the first one. */
const HIDDEN = [
  'POST /v1/tokens HTTP/1.1',
  'host: a',
  'content-type: application/json',
  `content-length: ${HIDDEN_BODY.length}`,
  '',
  HIDDEN_BODY,
].join('\r\n');

function statusesIn({ heard }: Intruder): number[] {
  return [...heard.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

function asking(target: Target, headers: readonly string[], body: string): string {
  const token = `authorization: Bearer ${target.tokens.decide}`;
  return [
    `POST /v1/allow HTTP/1.1`,
    'host: a',
    token,
    'content-type: application/json',
    ...headers,
    '',
    body,
  ].join('\r\n');
}

/** First requests with an ambiguous length, by the reason for the ambiguity. */
const SMUGGLED: Readonly<Record<string, (target: Target) => string>> = {
  'both a length and chunks': (target) =>
    asking(
      target,
      [`content-length: ${HIDDEN.length + 5}`, 'transfer-encoding: chunked'],
      `0\r\n\r\n${HIDDEN}`,
    ),
  'chunks, and a shorter length': (target) =>
    asking(target, ['transfer-encoding: chunked', 'content-length: 4'], `5c\r\n${HIDDEN}\r\n0\r\n\r\n`),
  'two lengths': (target) =>
    asking(target, ['content-length: 2', `content-length: ${HIDDEN.length + 2}`], `{}${HIDDEN}`),
  'a length with a sign': (target) => asking(target, ['content-length: +2'], `{}${HIDDEN}`),
  'two lengths in one': (target) => asking(target, ['content-length: 2, 2'], `{}${HIDDEN}`),
  'a space before the colon': (target) =>
    asking(target, ['transfer-encoding : chunked', 'content-length: 2'], `{}${HIDDEN}`),
  'an unknown coding': (target) =>
    asking(target, ['transfer-encoding: xchunked', 'content-length: 2'], `{}${HIDDEN}`),
  'chunked twice': (target) => asking(target, ['transfer-encoding: chunked, identity'], `0\r\n\r\n${HIDDEN}`),
  'a folded line': (target) =>
    asking(target, ['x-folded: a', ' transfer-encoding: chunked', 'content-length: 2'], `{}${HIDDEN}`),
  'lines that end in LF': (target) =>
    asking(target, ['content-length: 2'], `{}${HIDDEN}`).replaceAll('\r\n', '\n'),
  'a NUL in a name': (target) => asking(target, ['x\0: a', 'content-length: 2'], `{}${HIDDEN}`),
  'a size of a chunk that overflows': (target) =>
    asking(target, ['transfer-encoding: chunked'], `fffffffffffffffff\r\n{}\r\n0\r\n\r\n${HIDDEN}`),
  'an extension of a chunk with a line end': (target) =>
    asking(target, ['transfer-encoding: chunked'], `2;a=\n\r\n{}\r\n0\r\n\r\n${HIDDEN}`),
  'an upgrade': (target) =>
    asking(target, ['connection: upgrade', 'upgrade: h2c', 'content-length: 2'], `{}${HIDDEN}`),
  'HTTP/2 from the start': () => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`,
};

async function smuggle(target: Target): Promise<Outcome> {
  const gotIn: string[] = [];
  const all = Object.entries(SMUGGLED);
  for (const [name, bytes] of all) {
    const intruder = await sayOnce(target.address(1, 'http'), bytes(target), { quietMillis: QUIET_MILLIS });
    // The bytes behind a request may be read as another request, which is refused without a token. They must never run
    // with the token of the first one.
    if (statusesIn(intruder).includes(201)) gotIn.push(`${name}: ${statusesIn(intruder).join(', ')}`);
  }
  return { tries: all.length, gotIn };
}

const LONG: Readonly<Record<string, (target: Target) => string>> = {
  'a path of 1 MiB': () => `GET /${'a'.repeat(1 << 20)} HTTP/1.1\r\nhost: a\r\n\r\n`,
  'a header of 1 MiB': (target) =>
    asking(target, [`x-long: ${'a'.repeat(1 << 20)}`, 'content-length: 0'], ''),
  '100,000 headers': (target) =>
    asking(
      target,
      Array.from({ length: 100_000 }, (_, i) => `x-${i}: a`),
      '',
    ),
  'a body of 64 MiB by length': (target) =>
    asking(target, [`content-length: ${64 << 20}`], 'a'.repeat(4 << 20)),
  'a body of chunks without end': (target) =>
    asking(target, ['transfer-encoding: chunked'], `10000\r\n${'a'.repeat(65_536)}\r\n`.repeat(64)),
  'objects in objects': (target) => {
    const body = `${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}`;
    return asking(target, [`content-length: ${body.length}`], body);
  },
  'a user of 7 KiB': (target) => {
    const body = `{"userId":"${'a'.repeat(7_000)}"}`;
    return asking(target, [`content-length: ${body.length}`], body);
  },
  'numbers beyond numbers': (target) => {
    const body = '{"userId":"a","cost":1e999}';
    return asking(target, [`content-length: ${body.length}`], body);
  },
  'a prototype': (target) => {
    const body = '{"userId":"a","__proto__":{"cost":0},"constructor":{"prototype":{}}}';
    return asking(target, [`content-length: ${body.length}`], body);
  },
  '16 MiB of noise': () => 'GET \u0001'.repeat(4 << 20),
};

async function send(
  target: Target,
  all: Readonly<Record<string, (target: Target) => string>>,
): Promise<Outcome> {
  const gotIn: string[] = [];
  for (const [name, bytes] of Object.entries(all)) {
    const intruder = await sayOnce(target.address(2, 'http'), bytes(target), { quietMillis: QUIET_MILLIS });
    const granted = statusesIn(intruder).filter((status) => status < 300 || status >= 500);
    if (granted.length > 0) gotIn.push(`${name}: ${granted.join(', ')}`);
  }
  return { tries: Object.keys(all).length, gotIn };
}

/** Longer than a whole request may take. */
const LATE_MILLIS = 45_000;

/**
 * Sends a header line a second without end, or never begins the handshake. The attack succeeds if a connection is
 * kept.
 */
async function loris(target: Target, options: { readonly plain?: true }): Promise<Outcome> {
  const count = target.scale.slow;
  const all = await crowd(target.address(3, 'http'), count, options);
  if (options.plain !== true) for (const each of all) each.say('POST /v1/allow HTTP/1.1\r\nhost: a\r\n');
  const drip = setInterval(() => {
    if (options.plain !== true) for (const each of all) each.say('x-a: b\r\n');
  }, 1_000);
  const late = performance.now() + LATE_MILLIS;
  const closed = await Promise.all(all.map(async (each) => each.closed(late - performance.now())));
  clearInterval(drip);
  for (const each of all) each.leave();
  const kept = closed.filter((isClosed) => !isClosed).length;
  return {
    tries: count,
    gotIn: kept === 0 ? [] : [`${kept} slow connections were kept for ${LATE_MILLIS} ms`],
  };
}

export const HTTP_BYTES: readonly Attack[] = [
  { name: 'requests hidden in requests', listener: 'http', run: smuggle },
  {
    name: 'requests that are too long, too deep or malformed',
    listener: 'http',
    run: async (target) => send(target, LONG),
  },
  {
    name: 'slow requests, a header a second',
    listener: 'http',
    run: async (target) => loris(target, {}),
  },
  {
    name: 'handshakes that never begin',
    listener: 'http',
    run: async (target) => loris(target, { plain: true }),
  },
];
