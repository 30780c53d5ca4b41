/**
 * One client: its commands are read, asked, and answered in their order. It stops reading while too many answers are open or the
 * client does not take what it is sent, so that what is kept for one client has a bound.
 */
import type { Socket } from 'node:net';
import type { DescribedAnswer, DescribedRequest } from '../api/described.ts';
import type { AllowRequest } from '../api/request.ts';
import { type AnswerFormat, AnswerQueue } from './answer-queue.ts';
import type { Call, DoorCounts, DoorState } from './command.ts';
import { refusalOfCommand } from './command-roles.ts';
import { fitsArity, unknownCommand, wrongArity } from './command-table.ts';
import type { Flushable, FlushPass } from './flush-pass.ts';
import { failed, type Reply } from './reply.ts';
import { ReplyWriter } from './reply-writer.ts';
import { RequestParser } from './request-parser.ts';
import type { Session } from './session.ts';

/** Beyond one of the first three the client is not read; it is again below half of all. */
export interface ConnectionLimits {
  /** Commands without an answer that went out. */
  readonly openMax: number;
  /** Bytes of answers that the client has not taken. */
  readonly unreadBytesMax: number;
  /** The same of all clients together; whoever has taken all his answers is still served, so that others do not shut him out. */
  readonly allUnreadBytesMax: number;
  /** Of commands of all clients that are not finished: one beyond it ends its connection. */
  readonly allUnfinishedBytesMax: number;
}

/** What a client may take to see that its connection has ended. */
const LAST_WORDS_MILLIS = 1_000;
/** Of a decision with a rule id of 128 bytes. */
const DESCRIBED_BYTES_MAX = 256;
/** Encodes answers that are there at once; used within one call only. */
const scratch = new ReplyWriter();

export interface ConnectionInit {
  readonly socket: Socket;
  readonly session: Session;
  readonly door: DoorState;
  readonly flushPass: FlushPass;
  readonly limits: ConnectionLimits;
  /** Told of an error in a command, which is ours. */
  readonly failed: (error: unknown) => void;
}

export class Connection implements Flushable {
  readonly session: Session;
  readonly #init: ConnectionInit;
  readonly #parser = new RequestParser();
  readonly #answers = new AnswerQueue();
  readonly #call: Call;
  /** What was read is not parsed further for now. */
  #isHeldUp = false;
  /** The client will send nothing more. */
  #hasClientEnded = false;
  /** Nothing is taken from the client any more. */
  #isDeaf = false;
  /** Nothing will be sent any more. */
  #isFinished = false;
  #lastWords: NodeJS.Timeout | undefined;
  /** Its part of what the door keeps. */
  readonly #kept = { unfinishedBytes: 0, unreadBytes: 0 };
  readonly #written = (): void => {
    this.#tellKept();
    this.#readOnIfRoom();
  };

  constructor(init: ConnectionInit) {
    const { socket, session, door } = init;
    this.#init = init;
    this.session = session;
    this.#call = {
      args: this.#parser.arguments,
      session,
      door,
      ask: (request, format, quantity) => this.#ask(request, format, quantity),
      askDescribed: (request, replyTo) => this.#askDescribed(request, replyTo),
      answerLater: (bytesReserved) => this.#answerLater(bytesReserved),
    };
    socket.on('data', (chunk: Buffer) => {
      if (this.#isDeaf) return;
      session.lastMillis = door.monotonicMillis();
      this.#parser.push(chunk);
      if (!this.#isHeldUp) this.#read();
      this.#tellKept();
      if (!this.#isOneTooMany) return;
      this.#reply(failed('Protocol error: too many commands are unfinished'));
      this.#isDeaf = true;
    });
    socket.on('end', () => {
      this.#hasClientEnded = true;
      this.#finishIfIdle();
    });
    // Whatever broke, nobody is there to be told; `close` follows.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isDeaf = true;
      this.#isFinished = true;
      this.#answers.clear();
      this.#keeps(0, 0);
      clearTimeout(this.#lastWords);
    });
  }

  /** Takes no more commands, and ends when those it has are answered. */
  leave(): void {
    this.#isDeaf = true;
    this.#isHeldUp = false;
    this.#finishIfIdle();
  }

  flush(writer: ReplyWriter): void {
    this.#answers.drainTo(writer);
    if (writer.length > 0) {
      const bytes = writer.take();
      if (!this.#isFinished) this.#init.socket.write(bytes, this.#written);
    }
    this.#tellKept();
    this.#readOnIfRoom();
    // Whoever comes again goes to another node.
    if (!this.#isHeldUp && this.#init.door.node.wantsNoClients()) this.leave();
    this.#finishIfIdle();
  }

  #read(): void {
    while (!this.#isDeaf && !this.#init.socket.destroyed) {
      if (this.#isFull(1)) {
        this.#isHeldUp = true;
        this.#init.socket.pause();
        return;
      }
      switch (this.#parser.next()) {
        case 'command':
          this.#run();
          break;
        case 'unfinished':
          return;
        case 'broken':
          this.#reply(failed(this.#parser.fault));
          this.#isDeaf = true;
          return;
      }
      if (this.session.isLeaving) this.#isDeaf = true;
    }
  }

  #run(): void {
    const { args } = this.#call;
    const { door } = this.#init;
    door.counts.commands += 1;
    const command = door.commands.get(args, 0);
    if (command === undefined) {
      // A page in a browser can have lines sent here, as the body of an HTTP request: none of them is a command.
      if (args.is(0, 'POST') || args.is(0, 'HOST:')) this.#init.socket.destroy();
      else this.#reply(unknownCommand(args));
      return;
    }
    this.session.lastCommand = command.name;
    const refusal = refusalOfCommand(command, args, this.session, door.node.access);
    if (refusal !== undefined) {
      this.#reply(refusal);
      return;
    }
    if (!fitsArity(command, args.count)) {
      this.#reply(wrongArity(command.name));
      return;
    }
    try {
      const reply = command.run(this.#call);
      if (reply !== undefined) this.#reply(reply);
    } catch (error) {
      // A place without an answer would hold up all behind it.
      this.#init.failed(error);
      this.#init.socket.destroy();
    }
  }

  #reply(reply: Reply): void {
    scratch.reply(reply, this.session.version);
    this.#answers.add(scratch.take());
    this.#init.flushPass.mark(this);
  }

  #ask(request: AllowRequest, format: AnswerFormat, quantity: number): void {
    const place = this.#answers.reserve(format, quantity);
    const { node, counts } = this.#init.door;
    const startedMillis = this.session.lastMillis;
    node.allow(request, (answer) => {
      count(counts, answer);
      node.answered(request, answer, startedMillis);
      this.#answers.settle(place, answer);
      if (this.#answers.isReady && !this.#isFinished) this.#init.flushPass.mark(this);
    });
  }

  #askDescribed(request: DescribedRequest, replyTo: (answer: DescribedAnswer) => Reply): void {
    const { node, counts } = this.#init.door;
    const startedMillis = this.session.lastMillis;
    const tell = this.#answerLater(DESCRIBED_BYTES_MAX);
    node.allowDescribed(request, (answer) => {
      count(counts, answer);
      node.answered(request, answer, startedMillis);
      tell(replyTo(answer));
    });
  }

  #answerLater(bytesReserved: number): (reply: Reply) => void {
    const place = this.#answers.reserveBytes(bytesReserved);
    const { version } = this.session;
    return (reply) => {
      if (this.#isFinished) return;
      scratch.reply(reply, version);
      this.#answers.fill(place, scratch.take(), bytesReserved);
      if (this.#answers.isReady) this.#init.flushPass.mark(this);
    };
  }

  /** @param part of the bounds */
  #isFull(part: number): boolean {
    const { socket, door, limits } = this.#init;
    const unreadBytes = this.#answers.heldBytes + socket.writableLength;
    if (this.#answers.count >= limits.openMax * part || unreadBytes >= limits.unreadBytesMax * part)
      return true;
    return unreadBytes > 0 && door.kept.unreadBytes >= limits.allUnreadBytesMax * part;
  }

  /** Its command is not finished, and there is no room for more of those. */
  get #isOneTooMany(): boolean {
    const { door, limits } = this.#init;
    if (this.#isHeldUp || this.#isDeaf || this.#parser.heldBytes === 0) return false;
    return door.kept.unfinishedBytes > limits.allUnfinishedBytesMax;
  }

  /** Tells the door what is kept for this client now. */
  #tellKept(): void {
    const { socket } = this.#init;
    if (!socket.destroyed)
      this.#keeps(this.#parser.heldBytes, this.#answers.heldBytes + socket.writableLength);
  }

  #keeps(unfinishedBytes: number, unreadBytes: number): void {
    const { kept } = this.#init.door;
    kept.unfinishedBytes += unfinishedBytes - this.#kept.unfinishedBytes;
    kept.unreadBytes += unreadBytes - this.#kept.unreadBytes;
    this.#kept.unfinishedBytes = unfinishedBytes;
    this.#kept.unreadBytes = unreadBytes;
  }

  #readOnIfRoom(): void {
    // Nobody is asked for a client that is gone.
    if (!this.#isHeldUp || this.#isFull(0.5) || this.#init.socket.destroyed) return;
    this.#isHeldUp = false;
    this.#init.socket.resume();
    this.#read();
    this.#finishIfIdle();
  }

  #finishIfIdle(): void {
    const { socket } = this.#init;
    const isLast = this.#isDeaf || (this.#hasClientEnded && !this.#isHeldUp);
    if (!isLast || this.#isFinished || this.#answers.count > 0) return;
    this.#isFinished = true;
    this.#isDeaf = true;
    // What still comes is read and dropped: bytes that nobody reads would reset the connection, and its last answers with it.
    socket.resume();
    socket.end();
    this.#lastWords = setTimeout(() => socket.destroy(), LAST_WORDS_MILLIS);
  }
}

function count({ answers }: DoorCounts, answer: DescribedAnswer): void {
  switch (answer.kind) {
    case 'unlimited':
      answers.granted += 1;
      return;
    case 'degraded':
      answers[answer.allowed ? 'granted' : 'denied'] += 1;
      return;
    case 'decision':
      answers[answer.decision.allowed ? 'granted' : 'denied'] += 1;
      return;
    default:
      answers[answer.kind] += 1;
  }
}
