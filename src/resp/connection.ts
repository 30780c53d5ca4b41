/**
 * One client: its commands are read, asked, and answered in their order. It stops reading while too many answers are open or the
 * client does not take what it is sent, so that what is kept for one client has a bound.
 */
import type { Socket } from 'node:net';
import type { AskAnswer, Question } from '../api/question.ts';
import { type AnswerFormat, AnswerQueue } from './answer-queue.ts';
import { count } from './answer-counts.ts';
import { Backlog } from './backlog.ts';
import type { Call, DoorState } from './command.ts';
import { refusalOfCommand } from './command-roles.ts';
import { fitsArity, unknownCommand, wrongArity } from './command-table.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import type { Flushable, FlushPass } from './flush-pass.ts';
import { failed, type Reply } from './reply.ts';
import { KeptBytes } from './kept-bytes.ts';
import type { Readable, ReadPass } from './read-pass.ts';
import { ReplyWriter } from './reply-writer.ts';
import { RequestParser } from './request-parser.ts';
import { SHED_BYTES } from './shed.ts';
import type { Session } from './session.ts';

/** What a client may take to see that its connection has ended. */
const LAST_WORDS_MILLIS = 1_000;
/** Of a decision with a rule id of 128 bytes. */
const DESCRIBED_BYTES_MAX = 256;
/** What waited for its turn for longer is refused when it comes: its client may have given up. */
const IN_LINE_MILLIS_MAX = 1_000;
/** Its refusals are held behind decisions that it still waits for: so many times what may be open are read. */
const LATE_FACTOR = 8;
/** Encodes answers that are there at once; used within one call only. */
const scratch = new ReplyWriter();

export interface ConnectionInit {
  readonly socket: Socket;
  readonly session: Session;
  readonly door: DoorState;
  readonly flushPass: FlushPass;
  readonly readPass: ReadPass;
  readonly limits: ConnectionLimits;
  /** Told of an error in a command, which is ours. */
  readonly failed: (error: unknown) => void;
}

export class Connection implements Flushable, Readable {
  readonly session: Session;
  readonly #init: ConnectionInit;
  readonly #parser = new RequestParser();
  readonly #answers = new AnswerQueue();
  readonly #backlog: Backlog;
  readonly #call: Call;
  /** What was read is not parsed further for now. */
  #isHeldUp = false;
  /** The same, until it is its turn. */
  #isInLine = false;
  /** What is read now waited for its turn for so long that nothing more is asked for it. */
  #isTooLate = false;
  /** Requests that were refused for load since the last flush. */
  #shed = 0;
  /** Since when a command is not finished; undefined: none is. */
  #unfinishedMillis: number | undefined;
  /** The client will send nothing more. */
  #hasClientEnded = false;
  /** Nothing is taken from the client any more. */
  #isDeaf = false;
  /** Nothing will be sent any more. */
  #isFinished = false;
  #lastWords: NodeJS.Timeout | undefined;
  readonly #kept: KeptBytes;
  readonly #written = (): void => {
    this.#tellKept();
    this.#readOnIfRoom();
  };

  constructor(init: ConnectionInit) {
    const { socket, session, door } = init;
    this.#init = init;
    this.session = session;
    this.#backlog = new Backlog(door.monotonicMillis);
    this.#kept = new KeptBytes(door.kept);
    this.#call = {
      args: this.#parser.arguments,
      session,
      door,
      ask: (question, format, quantity) => this.#ask(question, format, quantity),
      askAtLength: (question, replyTo) => this.#askAtLength(question, replyTo),
      answerLater: (bytesReserved) => this.#answerLater(bytesReserved),
    };
    socket.on('data', (chunk: Buffer) => {
      if (this.#isDeaf) return;
      session.lastMillis = door.monotonicMillis();
      this.#parser.push(chunk);
      this.#backlog.came(chunk.length);
      if (!this.#isHeldUp) {
        if (init.readPass.hasWaiting) this.#waitInLine();
        else this.#read();
      }
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
      this.#kept.are(0, 0);
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
    this.#tellShed();
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

  /** It is its turn. @param waitedMillis for that */
  readOn(waitedMillis: number): void {
    this.#isInLine = false;
    this.#isHeldUp = false;
    if (this.#isDeaf || this.#init.socket.destroyed) return;
    this.#init.socket.resume();
    this.#isTooLate = waitedMillis > IN_LINE_MILLIS_MAX;
    this.#read();
    this.#isTooLate = false;
    this.#tellKept();
    this.#finishIfIdle();
  }

  /** Whoever sends a command in small pieces does not keep its place for ever. */
  look(nowMillis: number): void {
    const { limits } = this.#init;
    if (this.#isDeaf || this.#isHeldUp || this.#unfinishedMillis === undefined) return;
    if (nowMillis - this.#unfinishedMillis <= limits.commandMillisMax) return;
    this.#reply(failed(`Protocol error: a command must arrive within ${limits.commandMillisMax} ms`));
    this.#isDeaf = true;
  }

  #waitInLine(): void {
    this.#isInLine = true;
    this.#holdUp();
    this.#init.readPass.wait(this);
  }

  #holdUp(): void {
    this.#isHeldUp = true;
    this.#backlog.stands();
    this.#init.socket.pause();
  }

  #read(): void {
    this.#backlog.look(this.#init.door.node.shedding.isBusy);
    let commands = 0;
    while (!this.#isDeaf && !this.#init.socket.destroyed) {
      if (!this.#init.readPass.mayRead()) {
        this.#waitInLine();
        return;
      }
      if (this.#isFull(1)) {
        this.#holdUp();
        return;
      }
      switch (this.#parser.next()) {
        case 'command':
          commands += 1;
          this.#run();
          break;
        case 'unfinished':
          this.#noteUnfinished(commands > 0);
          this.#backlog.read();
          return;
        case 'broken':
          this.#reply(failed(this.#parser.fault));
          this.#isDeaf = true;
          return;
      }
      if (this.session.isLeaving) this.#isDeaf = true;
    }
  }

  /** @param isNext whether what came before it is finished */
  #noteUnfinished(isNext: boolean): void {
    if (!this.#parser.isBetweenCommands && (isNext || this.#unfinishedMillis === undefined))
      this.#unfinishedMillis = this.session.lastMillis;
    else if (this.#parser.isBetweenCommands) this.#unfinishedMillis = undefined;
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
    if (command.isShed === true && this.#isShed()) return;
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

  /** The node can take no more now, and the client was told. */
  #isShed(): boolean {
    const { shedding } = this.#init.door.node;
    if (!shedding.refuses(this.session.client, this.#backlog.isLate) && !this.#isTooLate) return false;
    // Told of and sent once for all: refusing must cost far less than deciding.
    if (this.#shed === 0) this.#init.flushPass.mark(this);
    this.#shed += 1;
    this.#answers.addAgain(SHED_BYTES);
    return true;
  }

  #tellShed(): void {
    if (this.#shed === 0) return;
    const { node, counts } = this.#init.door;
    counts.answers.unavailable += this.#shed;
    node.refusedUnread(this.#shed);
    this.#shed = 0;
  }

  #reply(reply: Reply): void {
    scratch.reply(reply, this.session.version);
    this.#answers.add(scratch.take());
    this.#init.flushPass.mark(this);
  }

  #ask(question: Question, format: AnswerFormat, quantity: number): void {
    const place = this.#answers.reserve(format, quantity);
    const { node, counts } = this.#init.door;
    const startedMillis = this.session.lastMillis;
    const share = node.shedding.entered(this.session.client, 1);
    node.ask(question, (answer) => {
      node.shedding.left(share, 1);
      count(counts, answer);
      node.answered(question, answer, startedMillis);
      this.#answers.settle(place, answer);
      if (this.#answers.isReady && !this.#isFinished) this.#init.flushPass.mark(this);
    });
  }

  #askAtLength(question: Question, replyTo: (answer: AskAnswer) => Reply): void {
    const { node, counts } = this.#init.door;
    const startedMillis = this.session.lastMillis;
    const tell = this.#answerLater(DESCRIBED_BYTES_MAX);
    const share = node.shedding.entered(this.session.client, 1);
    node.ask(question, (answer) => {
      node.shedding.left(share, 1);
      count(counts, answer);
      node.answered(question, answer, startedMillis);
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
    const openMax = this.#backlog.isLate ? LATE_FACTOR * limits.openMax : limits.openMax;
    if (this.#answers.count >= openMax * part || unreadBytes >= limits.unreadBytesMax * part) return true;
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
      this.#kept.are(this.#parser.heldBytes, this.#answers.heldBytes + socket.writableLength);
  }

  #readOnIfRoom(): void {
    // Nobody is asked for a client that is gone.
    if (!this.#isHeldUp || this.#isInLine || this.#isFull(0.5) || this.#init.socket.destroyed) return;
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
