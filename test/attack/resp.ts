/** Attacks on the Redis protocol listener: without a token, with a lower role, and with bytes that are not commands. */
import type { Attack, Outcome } from './attack.ts';
import { crowd, Intruder, sayOnce } from './sockets.ts';
import type { Target } from './target.ts';

const QUIET_MILLIS = 300;
const DECIDING = ['ALLOW eve', 'CL.THROTTLE eve 1 2 3', 'MATCH user eve', 'REFUND eve ID a'] as const;
const ASKING = [
  'PEEK eve',
  'INFO',
  'CLIENT LIST',
  'CLUSTER SLOTS',
  'CLUSTER NODES',
  'COMMAND',
  'CONFIG GET *',
  'DBSIZE',
  'ECHO a',
  'SELECT 0',
  'READONLY',
] as const;
const NEVER = [
  'FLUSHALL',
  'SHUTDOWN',
  'DEBUG SEGFAULT',
  'EVAL x 0',
  'SLAVEOF a 1',
  'MONITOR',
  'KEYS *',
] as const;

function command(line: string): string {
  const words = line.split(' ');
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

/** Sends each command on a new connection, after `first`. Any answer other than an error is an intrusion. */
async function tryAll(
  target: Target,
  lines: readonly string[],
  first: readonly string[] = [],
): Promise<Outcome> {
  const gotIn: string[] = [];
  for (const [i, line] of lines.entries()) {
    const id = 1 + (i % target.cluster.ids.length);
    const { heard } = await sayOnce(target.address(id, 'resp'), [...first, line].map(command).join(''), {
      quietMillis: QUIET_MILLIS,
    });
    const answer = heard.split('\r\n').slice(first.length).join(' ');
    if (!answer.startsWith('-') && answer !== '') gotIn.push(`${line}: ${answer.slice(0, 100)}`);
  }
  return { tries: lines.length, gotIn };
}

const NOISE: Readonly<Record<string, string>> = {
  'a billion arguments': '*1000000000\r\n',
  'an argument of a terabyte': '*1\r\n$1000000000000\r\n',
  'a negative count': '*-5\r\n*1\r\n$-7\r\n',
  'a line without an end': 'A'.repeat(4 << 20),
  'arrays in arrays': '*1\r\n'.repeat(100_000),
  'invalid numbers': '*1e3\r\n$0x10\r\n',
  'a request of a browser': 'POST / HTTP/1.1\r\nHost: a\r\n\r\nALLOW eve\r\n',
  'many empty commands': '*0\r\n'.repeat(1_000_000),
  NULs: '\0'.repeat(1 << 20),
};

async function noise(target: Target): Promise<Outcome> {
  const gotIn: string[] = [];
  for (const [name, bytes] of Object.entries(NOISE)) {
    const { heard } = await sayOnce(target.address(1, 'resp'), bytes, { quietMillis: QUIET_MILLIS });
    const answer = heard.split('\r\n').find((line) => line !== '' && !line.startsWith('-'));
    if (answer !== undefined) gotIn.push(`${name}: ${answer.slice(0, 100)}`);
  }
  return { tries: Object.keys(NOISE).length, gotIn };
}

const GUESSES_COUNT = 100;

async function guess(target: Target): Promise<Outcome> {
  const { admin, revoked } = target.tokens;
  const guesses = Array.from({ length: GUESSES_COUNT }, (_, i) => `AUTH ${admin.slice(0, -2)}${i}`);
  const gotIn: string[] = [];
  const intruder = new Intruder(target.address(2, 'resp'));
  if (await intruder.opened(10_000))
    for (const line of [`AUTH ${revoked}`, `AUTH default ${revoked}`, 'AUTH', 'AUTH a b c', ...guesses])
      intruder.say(command(line));
  // After some wrong tokens the node closes the connection.
  if (!(await intruder.closed(10_000))) gotIn.push('one connection may guess without end');
  if (intruder.heard.includes('+OK')) gotIn.push('a wrong token was accepted');
  intruder.leave();
  return { tries: GUESSES_COUNT + 4, gotIn };
}

/** Each connection requests half a megabyte of answers and reads none. */
const DEAF_COUNT = 50;
const DEAF_COMMANDS = 20_000;

async function deaf(target: Target): Promise<Outcome> {
  const all = await crowd(target.address(3, 'resp'), DEAF_COUNT, { deaf: true });
  const flood = command(`AUTH ${target.tokens.decide}`) + command('COMMAND').repeat(DEAF_COMMANDS);
  for (const each of all) each.say(flood);
  await Promise.all(all.map(async (each) => each.closed(5_000)));
  for (const each of all) each.leave();
  return { tries: DEAF_COUNT * DEAF_COMMANDS, gotIn: [] };
}

export const RESP: readonly Attack[] = [
  {
    name: 'every command without a token',
    listener: 'resp',
    run: async (target) => tryAll(target, [...DECIDING, ...ASKING, ...NEVER, 'HELLO 3']),
  },
  {
    name: 'a token to read, used to decide',
    listener: 'resp',
    run: async (target) => tryAll(target, DECIDING, [`AUTH ${target.tokens.read}`]),
  },
  {
    name: 'a token to decide, used to list other clients',
    listener: 'resp',
    run: async (target) => tryAll(target, ['CLIENT LIST', ...NEVER], [`AUTH ${target.tokens.decide}`]),
  },
  { name: 'guesses of a token', listener: 'resp', run: guess },
  { name: 'commands that are too long, too deep or malformed', listener: 'resp', run: noise },
  { name: 'clients that never read their answers', listener: 'resp', run: deaf },
];
