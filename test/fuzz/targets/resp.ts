/**
 * Targets for the Redis protocol: commands cut anywhere, and a whole connection, whose answers a client must be able to
 * parse.
 */
import { PlayedAccess } from '../../api/played-access.ts';
import { PlayedShedding } from '../../api/played-shedding.ts';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { isBoundedText } from '../../../src/api/bounded.ts';
import type { NodeApi } from '../../../src/api/api-listener.ts';
import { USER } from '../../../src/api/descriptors.ts';
import { invalidInQuestion } from '../../../src/api/question.ts';
import { KEY_BYTES_MAX, RULE_ID_BYTES_MAX } from '../../../src/api/request.ts';
import type { ListenerState } from '../../../src/resp/command.ts';
import { COMMAND_TABLE } from '../../../src/resp/commands/all.ts';
import { Connection } from '../../../src/resp/connection.ts';
import { RESP_LIMITS } from '../../../src/resp/resp-listener-init.ts';
import { FlushPass, ReadPass } from '../../../src/resp/turn-passes.ts';
import { ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, RequestParser } from '../../../src/resp/request-parser.ts';
import { Session } from '../../../src/resp/session.ts';
import { decisionOf, limitStatusOf } from '../../api/decision-of.ts';
import { decodeReplies } from '../../resp/decode-replies.ts';
import { encodeCommand, REPORT } from '../../resp/fixtures.ts';
import { type Judge, type Outcome, promise, promiseSame, type Target } from '../target.ts';

/** The maximum memory for an unfinished command, as a multiple of the received bytes plus the initial buffer. */
const HELD_FACTOR = 4;
const HELD_FREE_BYTES = 1_024;

interface Seen {
  readonly commands: readonly (readonly string[])[];
  readonly fault: string;
}

/** @param cut bytes at a time */
function commandsIn(stream: Buffer, cut: number): Seen {
  const parser = new RequestParser();
  const commands: string[][] = [];
  for (let at = 0; at < stream.length; at += cut) {
    const chunk = Buffer.from(stream.subarray(at, at + cut));
    parser.push(chunk);
    let parsed = parser.next();
    for (; parsed === 'command'; parsed = parser.next()) commands.push(argumentsOf(parser));
    promise(
      parser.heldBytes <= HELD_FREE_BYTES + HELD_FACTOR * stream.length,
      `${parser.heldBytes} bytes are held`,
    );
    if (parsed === 'broken') break;
    // A socket uses its buffer again.
    chunk.fill(0x2a);
  }
  return { commands, fault: parser.fault };
}

function argumentsOf(parser: RequestParser): string[] {
  const { count } = parser.arguments;
  promise(count >= 1 && count <= ARGUMENTS_MAX, `a command of ${count} arguments`);
  return Array.from({ length: count }, (_, i) => {
    const bytes = parser.arguments.bytes(i);
    promise(bytes.length <= ARGUMENT_BYTES_MAX, `an argument of ${bytes.length} bytes`);
    return bytes.toString('latin1');
  });
}

/** The first byte chooses how the rest is cut. */
function runParser(input: Buffer): Outcome {
  const stream = input.subarray(1);
  const whole = commandsIn(stream, stream.length + 1);
  promiseSame(commandsIn(stream, 1 + ((input[0] ?? 0) & 0x3f)), whole, 'commands that are cut');
  return whole.fault === '' ? `read ${Math.min(3, whole.commands.length)}` : `refused: ${whole.fault}`;
}

const RECEIPT = { term: 2, index: 7, timeMillis: 90 };
const NODE: NodeApi = {
  ask: (question, done) => {
    const { descriptors } = question;
    promise(invalidInQuestion(question) === undefined, `a request for ${JSON.stringify([...descriptors])}`);
    const isLimited = descriptors.get(USER) !== undefined;
    done(
      isLimited ? { kind: 'decision', decision: decisionOf() } : { kind: 'unlimited', rulesVersion: 7 },
      0,
    );
  },
  answered: () => {},
  refusedUnread: () => {},
  usage: (_query, done) => done({ ok: false, reason: 'starting' }),
  allowListed: (_request, done) => done({ kind: 'unavailable', reason: 'starting', proposed: false }),
  peek: ({ key, rule }, done) => {
    promise(isBoundedText(key, KEY_BYTES_MAX), `a peek at ${key}`);
    promise(rule === undefined || isBoundedText(rule, RULE_ID_BYTES_MAX), 'a rule within its bounds');
    done(
      { kind: 'keyStatus', keyStatus: { limits: [limitStatusOf()], decided: RECEIPT, rulesVersion: 7 } },
      0,
    );
  },
  refund: (question, done) => {
    promise(invalidInQuestion(question) === undefined, `a refund of ${question.requestId}`);
    const refund = { refunded: true, ruleId: 'default', cost: 2, decided: RECEIPT, rulesVersion: 7 };
    done({ kind: 'refund', refund, kept: undefined }, 0);
  },
  access: new PlayedAccess(),
  shedding: new PlayedShedding(),
  operate: () => {},
  setUsed: () => {},
  customer: () => {},
  backup: () => {},
  readiness: () => ({ status: 'ready' }),
  wantsNoClients: () => false,
  cluster: () => REPORT,
  change: () => {},
  rules: () => undefined,
  rule: () => undefined,
};

/** A client that reads everything. */
class PlayedSocket extends EventEmitter {
  readonly sent: Buffer[] = [];
  readonly writableLength = 0;
  destroyed = false;
  write(bytes: Uint8Array, done?: () => void): boolean {
    this.sent.push(Buffer.from(bytes));
    if (done !== undefined) this.#written.push(done);
    return true;
  }
  readonly #written: (() => void)[] = [];
  /** Whether a listener was called after a write. */
  written(): boolean {
    const reported = this.#written.splice(0);
    for (const done of reported) done();
    return reported.length > 0;
  }
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {
    this.destroyed = true;
  }
}

/** All bytes that a new client receives. The first byte says how the rest of the input is cut. */
function runConnection(input: Buffer): Judge {
  const socket = new PlayedSocket();
  const passes: (() => void)[] = [];
  const failures: unknown[] = [];
  const session = new Session({
    id: 1,
    remote: 'client:1',
    local: 'node:1',
    address: 'client',
    nowMillis: 0,
  });
  const counts = { connections: 1, rejected: 0, commands: 0 };
  const listener: ListenerState = {
    node: NODE,
    version: '1.2.3',
    monotonicMillis: () => 1_000,
    startedMillis: 0,
    port: () => 1,
    connectionsMax: 1,
    kept: { unfinishedBytes: 0, unreadBytes: 0 },
    counts: { ...counts, answers: { granted: 0, denied: 0, invalid: 0, conflict: 0, unavailable: 0 } },
    sessions: () => [session],
    commands: COMMAND_TABLE,
  };
  const atTurnEnd = (pass: () => void): void => void passes.push(pass);
  const connection = new Connection({
    socket: socket as unknown as Socket,
    session,
    listener,
    flushPass: new FlushPass(atTurnEnd),
    readPass: new ReadPass({ monotonicMillis: () => 1_000, atTurnEnd }),
    limits: RESP_LIMITS,
    failed: (error) => failures.push(error),
  });
  const stream = input.subarray(1);
  const cut = 1 + 16 * (input[0] ?? 0);
  for (let at = 0; at < stream.length && !socket.destroyed; at += cut) {
    socket.emit('data', Buffer.from(stream.subarray(at, at + cut)));
    do for (const flush of passes.splice(0)) flush();
    while (socket.written() || passes.length > 0);
  }
  promise(connection.session === session, 'the session of the connection is unchanged');
  socket.emit('close');
  if (failures.length > 0) throw failures[0];
  promise(
    listener.kept.unfinishedBytes === 0 && listener.kept.unreadBytes === 0,
    'nothing is kept for a closed connection',
  );
  // A client that speaks HTTP is disconnected without an answer.
  const unanswered = socket.destroyed && /post|host:/i.test(stream.toString('latin1')) ? 1 : 0;
  return () => outcomeOf(Buffer.concat(socket.sent), listener.counts.commands, unanswered);
}

const CHANNEL_WORDS = ['subscribe', 'unsubscribe'];

/** Counts complete replies, so that a reply without its end is missing. */
function outcomeOf(sent: Buffer, commands: number, unanswered: number): Outcome {
  const replies = decodeReplies(sent);
  const isFault = /-ERR Protocol error: [^\r\n]*\r\n$/.test(sent.toString('latin1'));
  const least = commands - unanswered;
  // One reply for each channel that a command names.
  const ofChannels = replies.filter(
    (reply) => Array.isArray(reply) && CHANNEL_WORDS.includes(reply[0] as string),
  );
  promise(
    replies.length >= least && replies.length - ofChannels.length <= commands + 1,
    `${replies.length} replies to ${commands} commands: ${sent.toString('latin1').slice(-200)}`,
  );
  if (isFault) return `refused: ${sent.toString('latin1').slice(-60)}`;
  return `read ${sent.toString('latin1', 0, 30)}`;
}

const word = fc.oneof(
  fc.constantFrom(
    '1',
    '60000',
    'ada',
    'default',
    'COST',
    'ID',
    'AT',
    'RULE',
    'user',
    '3',
    'LIST',
    'SLOTS',
    '-1',
    '',
  ),
  fc.string({ maxLength: 12, unit: 'binary' }),
);
const name = fc.constantFrom(...[...COMMAND_TABLE.all].map(({ name: each }) => each));
const command = fc.tuple(name, fc.array(word, { maxLength: 6 })).map(([first, rest]) => [first, ...rest]);
const bytes = fc.uint8Array({ maxLength: 60 }).map((each) => Buffer.from(each));
const array = fc.array(bytes, { minLength: 1, maxLength: 6 }).map((args) => encodeCommand(...args));
const inline = fc
  .array(
    fc.constantFrom(
      'PING',
      'ALLOW',
      'ada',
      '"a b"',
      "'it'",
      '"\\x41\\n\\""',
      "'\\''",
      'x'.repeat(300),
      '\t',
      ' ',
    ),
    { maxLength: 8 },
  )
  .map((words) => Buffer.from(`${words.join(' ')}\r\n`));
const WORDS = [
  '\r\n',
  '*1\r\n',
  '$4\r\n',
  '*-1\r\n',
  '$-1\r\n',
  '"',
  "'",
  '\\x',
  '*64\r\n',
  '$4096\r\n',
  ' ',
  'HELLO',
  'RESET',
  'QUIT',
  'CLIENT',
];

function streamOf(cut: number, parts: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.of(cut), ...parts]);
}

export const RESP: readonly Target[] = [
  {
    name: 'resp-requests',
    parser: 'RESP requests, cut anywhere',
    sound: fc
      .tuple(fc.nat(255), fc.array(array, { maxLength: 5 }))
      .map(([cut, parts]) => streamOf(cut, parts)),
    words: WORDS,
    bytesMax: 8_192,
    bytesPerByteMax: 512,
    run: runParser,
  },
  {
    name: 'resp-inline',
    parser: 'inline commands, cut anywhere',
    sound: fc
      .tuple(fc.nat(255), fc.array(inline, { maxLength: 5 }))
      .map(([cut, parts]) => streamOf(cut, parts)),
    words: WORDS,
    bytesMax: 8_192,
    bytesPerByteMax: 512,
    run: runParser,
  },
  {
    name: 'resp-connection',
    parser: 'commands of the RESP listener, with their replies',
    sound: fc.tuple(fc.nat(255), fc.array(command, { maxLength: 5 })).map(([cut, commands]) =>
      streamOf(
        cut,
        commands.map((args) => encodeCommand(...args)),
      ),
    ),
    words: WORDS,
    bytesMax: 8_192,
    bytesPerByteMax: 2_048,
    run: runConnection,
  },
];
