/**
 * One client connection: commands are read, passed to the node, and answered in their order. It stops reading while
 * too many answers are open or the client does not read them, so that the memory for one client is bounded.
 */
import type { Socket } from 'node:net';
import { Backlog } from './backlog.ts';
import type { Call, ListenerState } from './command.ts';
import { refusalOfCommand, refusalOfState } from './command-roles.ts';
import { fitsArity, unknownCommand, wrongArity } from './command-table.ts';
import { ConnectionAnswers } from './connection-answers.ts';
import type { ConnectionLimits } from './resp-listener-init.ts';
import type { Flushable, FlushPass, Readable, ReadPass } from './turn-passes.ts';
import { type ErrorReply, failed, simple } from './reply.ts';
import { KeptBytes } from './kept-bytes.ts';
import type { ReplyWriter } from './reply-writer.ts';
import { RequestParser } from './request-parser.ts';
import type { Session } from './session.ts';
import { TRANSACTION_BOUND } from './transaction.ts';

/** The time a client gets to see that its connection has ended, in milliseconds. */
const LAST_WORDS_MILLIS = 1_000;
/** Commands that waited longer than this for their turn are refused, because their client may have given up. */
const IN_LINE_MILLIS_MAX = 1_000;
/** A late client's refusals wait behind decisions. It may have this many times the usual number of open commands. */
const LATE_FACTOR = 8;
const QUEUED = simple('QUEUED');

/** The parts that a connection is built from. */
export interface ConnectionInit {
  readonly socket: Socket;
  readonly session: Session;
  readonly listener: ListenerState;
  readonly flushPass: FlushPass;
  readonly readPass: ReadPass;
  readonly limits: ConnectionLimits;
  /** Called for an error in our own code. */
  readonly failed: (error: unknown) => void;
}

/** One client connection. */
export class Connection implements Flushable, Readable {
  readonly session: Session;
  readonly #init: ConnectionInit;
  readonly #parser = new RequestParser();
  readonly #answers: ConnectionAnswers;
  readonly #backlog: Backlog;
  readonly #call: Call;
  /** Parsing is paused, and so is the socket. */
  #isHeldUp = false;
  /** Parsing is paused until the read pass continues it. */
  #isInLine = false;
  /** The commands that are read now waited too long, so they are refused. */
  #isTooLate = false;
  /** Since when a command is unfinished, on the monotonic clock. Undefined: none is. */
  #unfinishedMillis: number | undefined;
  /** The client has closed its side. */
  #hasClientEnded = false;
  /** No more commands are accepted. */
  #isDeaf = false;
  /** Nothing will be sent any more. */
  #isFinished = false;
  #lastWords: NodeJS.Timeout | undefined;
  readonly #kept: KeptBytes;
  readonly #written = (): void => {
    this.#updateKept();
    this.#readOnIfRoom();
  };

  constructor(init: ConnectionInit) {
    const { socket, session, listener } = init;
    this.#init = init;
    this.session = session;
    this.#backlog = new Backlog(listener.monotonicMillis);
    this.#kept = new KeptBytes(listener.kept);
    const answers = new ConnectionAnswers({ session, listener, mark: () => init.flushPass.mark(this) });
    this.#answers = answers;
    this.#call = {
      args: this.#parser.arguments,
      session,
      listener,
      ask: (question, format, quantity) => answers.ask(question, format, quantity),
      askAtLength: (question, replyTo) => answers.askAtLength(question, replyTo),
      answerLater: (bytesReserved) => answers.later(bytesReserved),
    };
    socket.on('data', (chunk: Buffer) => {
      if (this.#isDeaf) return;
      session.lastMillis = listener.monotonicMillis();
      this.#parser.push(chunk);
      this.#backlog.came(chunk.length);
      if (!this.#isHeldUp) {
        if (init.readPass.hasWaiting) this.#waitInLine();
        else this.#read();
      }
      this.#updateKept();
      if (!this.#isOneTooMany) return;
      this.#answers.reply(failed('Protocol error: too many commands are unfinished'));
      this.#isDeaf = true;
    });
    socket.on('end', () => {
      this.#hasClientEnded = true;
      this.#finishIfIdle();
    });
    // The error needs no handling: the client is gone, and `close` follows.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isDeaf = true;
      this.#isFinished = true;
      answers.end();
      this.#kept.are(0, 0);
      clearTimeout(this.#lastWords);
    });
  }

  /** Accepts no more commands, and ends the connection when the pending ones are answered. */
  leave(): void {
    this.#isDeaf = true;
    if (!this.#isExecuting) this.#isHeldUp = false;
    this.#finishIfIdle();
  }

  /** Sends the answers that are ready. */
  flush(writer: ReplyWriter): void {
    this.#answers.drainTo(writer);
    if (writer.length > 0) {
      const bytes = writer.take();
      if (!this.#isFinished) this.#init.socket.write(bytes, this.#written);
    }
    this.#updateKept();
    this.#readOnIfRoom();
    // The node wants no new clients. If this client connects again, it goes to another node.
    if (!this.#isHeldUp && this.#init.listener.node.wantsNoClients()) this.leave();
    this.#finishIfIdle();
  }

  /** The read pass continues this connection. @param waitedMillis how long it waited */
  readOn(waitedMillis: number): void {
    this.#isInLine = false;
    this.#isHeldUp = false;
    if (this.#hasReadAll || this.#init.socket.destroyed) return;
    this.#init.socket.resume();
    this.#isTooLate = waitedMillis > IN_LINE_MILLIS_MAX;
    this.#read();
    this.#isTooLate = false;
    this.#updateKept();
    this.#finishIfIdle();
  }

  /** Called regularly: disconnects a client that takes too long to send one command. */
  check(nowMillis: number): void {
    const { limits } = this.#init;
    const { transaction } = this.session;
    // An open transaction counts as an unfinished command, so it has the same time limit.
    if (transaction?.isOpen === true && nowMillis - transaction.openedMillis > limits.commandMillisMax)
      transaction.refuse();
    this.#updateKept();
    if (this.#isDeaf || this.#isHeldUp || this.#unfinishedMillis === undefined) return;
    if (nowMillis - this.#unfinishedMillis <= limits.commandMillisMax) return;
    this.#answers.reply(failed(`Protocol error: a command must arrive within ${limits.commandMillisMax} ms`));
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
    this.#backlog.check(this.#init.listener.node.shedding.isBusy);
    let commands = 0;
    while (!this.#hasReadAll && !this.#init.socket.destroyed) {
      if (!this.#init.readPass.mayRead()) {
        this.#waitInLine();
        return;
      }
      if (this.#isFull(1)) {
        this.#holdUp();
        return;
      }
      if (this.#isExecuting) {
        if (this.session.transaction?.take(this.#call.args) === true) this.#run();
        else this.session.transaction = undefined;
      } else
        switch (this.#parser.next()) {
          case 'command':
            commands += 1;
            this.#init.listener.counts.commands += 1;
            this.#run();
            break;
          case 'unfinished':
            this.#noteUnfinished(commands > 0);
            this.#backlog.read();
            return;
          case 'broken':
            this.#answers.reply(failed(this.#parser.fault));
            this.#isDeaf = true;
            return;
        }
      if (this.session.isLeaving) this.#isDeaf = true;
    }
  }

  /** @param isNext true if the command before it is finished */
  #noteUnfinished(isNext: boolean): void {
    if (!this.#parser.isBetweenCommands && (isNext || this.#unfinishedMillis === undefined))
      this.#unfinishedMillis = this.session.lastMillis;
    else if (this.#parser.isBetweenCommands) this.#unfinishedMillis = undefined;
  }

  #run(): void {
    const { args } = this.#call;
    const { access } = this.#init.listener.node;
    const command = this.#init.listener.commands.get(args, 0);
    if (command === undefined) {
      // A web page can make a browser send lines to this port, as the body of an HTTP request. None of them must run
      // as a command.
      if (args.is(0, 'POST') || args.is(0, 'HOST:')) this.#init.socket.destroy();
      else this.#refuse(unknownCommand(args));
      return;
    }
    this.session.lastCommand = command.name;
    const refusal =
      refusalOfCommand(command, args, this.session, access) ?? refusalOfState(command, this.session);
    if (refusal !== undefined) {
      this.#refuse(refusal);
      return;
    }
    const isKept = this.session.transaction?.isOpen === true && command.inTransaction === undefined;
    if (!isKept && command.isShed === true && this.#isShed) {
      this.#answers.shed();
      return;
    }
    if (!fitsArity(command, args.count)) {
      this.#refuse(wrongArity(command.name));
      return;
    }
    if (isKept) {
      this.#keep();
      return;
    }
    try {
      const reply = command.run(this.#call);
      if (reply !== undefined) this.#answers.reply(reply);
    } catch (error) {
      // A place without an answer would block all answers behind it.
      this.#init.failed(error);
      this.#init.socket.destroy();
    }
  }

  /** Refuses a command. If it belongs to a transaction, the whole transaction is refused. */
  #refuse(error: ErrorReply): void {
    if (this.session.transaction?.isOpen === true) this.session.transaction.refuse();
    this.#answers.reply(error);
  }

  #keep(): void {
    const isKept = this.session.transaction?.maybeKeep(this.#call.args) === true;
    this.#answers.reply(isKept ? QUEUED : failed(`a transaction may have at most ${TRANSACTION_BOUND}`));
  }

  /** True if the node cannot take this command now. */
  get #isShed(): boolean {
    const { shedding } = this.#init.listener.node;
    return shedding.refuses(this.session.client, this.#backlog.isLate) || this.#isTooLate;
  }

  /**
   * True while the commands of a transaction run. They came before the client or the node ended the connection, so
   * they still run then.
   */
  get #isExecuting(): boolean {
    return this.session.transaction?.isOpen === false;
  }

  get #hasReadAll(): boolean {
    return this.#isDeaf && !this.#isExecuting;
  }

  /** The bytes of commands that have not run. */
  get #unfinishedBytes(): number {
    return this.#parser.heldBytes + (this.session.transaction?.heldBytes ?? 0);
  }

  /** True if a limit is reached. @param part compare with this fraction of the limits */
  #isFull(part: number): boolean {
    const { socket, listener, limits } = this.#init;
    const unreadBytes = this.#answers.heldBytes + socket.writableLength;
    const openMax = this.#backlog.isLate ? LATE_FACTOR * limits.openMax : limits.openMax;
    if (this.#answers.count >= openMax * part || unreadBytes >= limits.unreadBytesMax * part) return true;
    return unreadBytes > 0 && listener.kept.unreadBytes >= limits.allUnreadBytesMax * part;
  }

  /** True if this client has an unfinished command and all clients together have too many bytes of those. */
  get #isOneTooMany(): boolean {
    const { listener, limits } = this.#init;
    if (this.#isHeldUp || this.#isDeaf || this.#unfinishedBytes === 0) return false;
    return listener.kept.unfinishedBytes > limits.allUnfinishedBytesMax;
  }

  /** Updates how many bytes are kept for this client. */
  #updateKept(): void {
    const { socket } = this.#init;
    if (!socket.destroyed)
      this.#kept.are(this.#unfinishedBytes, this.#answers.heldBytes + socket.writableLength);
  }

  #readOnIfRoom(): void {
    // A destroyed socket is not read any more.
    if (!this.#isHeldUp || this.#isInLine || this.#isFull(0.5) || this.#init.socket.destroyed) return;
    this.#isHeldUp = false;
    this.#init.socket.resume();
    this.#read();
    this.#finishIfIdle();
  }

  #finishIfIdle(): void {
    const { socket } = this.#init;
    const isLast = this.#hasReadAll || (this.#hasClientEnded && !this.#isHeldUp);
    if (!isLast || this.#isFinished || this.#answers.count > 0) return;
    this.#isFinished = true;
    this.#isDeaf = true;
    // Bytes that still arrive are read and dropped. Unread bytes would reset the connection, and the last answers
    // could be lost.
    socket.resume();
    socket.end();
    this.#lastWords = setTimeout(() => socket.destroy(), LAST_WORDS_MILLIS);
  }
}
