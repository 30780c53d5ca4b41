/**
 * One client: its commands are read, asked, and answered in their order. It stops reading while too many answers are open or the
 * client does not take what it is sent, so that what is kept for one client has a bound.
 */
import type { Socket } from 'node:net';
import { Backlog } from './backlog.ts';
import type { Call, DoorState } from './command.ts';
import { refusalOfCommand, refusalOfState } from './command-roles.ts';
import { fitsArity, unknownCommand, wrongArity } from './command-table.ts';
import { ConnectionAnswers } from './connection-answers.ts';
import type { ConnectionLimits } from './connection-limits.ts';
import type { Flushable, FlushPass } from './flush-pass.ts';
import { type ErrorReply, failed, simple } from './reply.ts';
import { KeptBytes } from './kept-bytes.ts';
import type { Readable, ReadPass } from './read-pass.ts';
import type { ReplyWriter } from './reply-writer.ts';
import { RequestParser } from './request-parser.ts';
import type { Session } from './session.ts';
import { TRANSACTION_BOUND } from './transaction.ts';

/** What a client may take to see that its connection has ended. */
const LAST_WORDS_MILLIS = 1_000;
/** What waited for its turn for longer is refused when it comes: its client may have given up. */
const IN_LINE_MILLIS_MAX = 1_000;
/** Its refusals are held behind decisions that it still waits for: so many times what may be open are read. */
const LATE_FACTOR = 8;
const QUEUED = simple('QUEUED');

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
  readonly #answers: ConnectionAnswers;
  readonly #backlog: Backlog;
  readonly #call: Call;
  /** What was read is not parsed further for now. */
  #isHeldUp = false;
  /** The same, until it is its turn. */
  #isInLine = false;
  /** What is read now waited for its turn for so long that nothing more is asked for it. */
  #isTooLate = false;
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
    const answers = new ConnectionAnswers({ session, door, mark: () => init.flushPass.mark(this) });
    this.#answers = answers;
    this.#call = {
      args: this.#parser.arguments,
      session,
      door,
      ask: (question, format, quantity) => answers.ask(question, format, quantity),
      askAtLength: (question, replyTo) => answers.askAtLength(question, replyTo),
      answerLater: (bytesReserved) => answers.later(bytesReserved),
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
      this.#answers.reply(failed('Protocol error: too many commands are unfinished'));
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
      answers.end();
      this.#kept.are(0, 0);
      clearTimeout(this.#lastWords);
    });
  }

  /** Takes no more commands, and ends when those it has are answered. */
  leave(): void {
    this.#isDeaf = true;
    if (!this.#isExecuting) this.#isHeldUp = false;
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

  /** It is its turn. @param waitedMillis for that */
  readOn(waitedMillis: number): void {
    this.#isInLine = false;
    this.#isHeldUp = false;
    if (this.#hasReadAll || this.#init.socket.destroyed) return;
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
    const { transaction } = this.session;
    // What it keeps counts with the unfinished commands of all, and as those not for ever.
    if (transaction?.isOpen === true && nowMillis - transaction.openedMillis > limits.commandMillisMax)
      transaction.refuse();
    this.#tellKept();
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
    this.#backlog.look(this.#init.door.node.shedding.isBusy);
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
            this.#init.door.counts.commands += 1;
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

  /** @param isNext whether what came before it is finished */
  #noteUnfinished(isNext: boolean): void {
    if (!this.#parser.isBetweenCommands && (isNext || this.#unfinishedMillis === undefined))
      this.#unfinishedMillis = this.session.lastMillis;
    else if (this.#parser.isBetweenCommands) this.#unfinishedMillis = undefined;
  }

  #run(): void {
    const { args } = this.#call;
    const { access } = this.#init.door.node;
    const command = this.#init.door.commands.get(args, 0);
    if (command === undefined) {
      // A page in a browser can have lines sent here, as the body of an HTTP request: none of them is a command.
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
      // A place without an answer would hold up all behind it.
      this.#init.failed(error);
      this.#init.socket.destroy();
    }
  }

  /** The command does not run, and if it was to be part of a transaction, neither does that. */
  #refuse(error: ErrorReply): void {
    if (this.session.transaction?.isOpen === true) this.session.transaction.refuse();
    this.#answers.reply(error);
  }

  #keep(): void {
    const isKept = this.session.transaction?.maybeKeep(this.#call.args) === true;
    this.#answers.reply(isKept ? QUEUED : failed(`a transaction may have at most ${TRANSACTION_BOUND}`));
  }

  /** The node can take no more now. */
  get #isShed(): boolean {
    const { shedding } = this.#init.door.node;
    return shedding.refuses(this.session.client, this.#backlog.isLate) || this.#isTooLate;
  }

  /** Commands of a transaction are running: they came before the client, or the node, ended the connection. */
  get #isExecuting(): boolean {
    return this.session.transaction?.isOpen === false;
  }

  get #hasReadAll(): boolean {
    return this.#isDeaf && !this.#isExecuting;
  }

  /** Bytes of commands that have not run. */
  get #unfinishedBytes(): number {
    return this.#parser.heldBytes + (this.session.transaction?.heldBytes ?? 0);
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
    if (this.#isHeldUp || this.#isDeaf || this.#unfinishedBytes === 0) return false;
    return door.kept.unfinishedBytes > limits.allUnfinishedBytesMax;
  }

  /** Tells the door what is kept for this client now. */
  #tellKept(): void {
    const { socket } = this.#init;
    if (!socket.destroyed)
      this.#kept.are(this.#unfinishedBytes, this.#answers.heldBytes + socket.writableLength);
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
    const isLast = this.#hasReadAll || (this.#hasClientEnded && !this.#isHeldUp);
    if (!isLast || this.#isFinished || this.#answers.count > 0) return;
    this.#isFinished = true;
    this.#isDeaf = true;
    // What still comes is read and dropped: bytes that nobody reads would reset the connection, and its last answers with it.
    socket.resume();
    socket.end();
    this.#lastWords = setTimeout(() => socket.destroy(), LAST_WORDS_MILLIS);
  }
}
