/**
 * A TCP proxy that misbehaves on command: each direction of what passes through it can be cut, black-holed, clogged,
 * never read, delayed, throttled, corrupted or broken off, while it runs. It knows nothing of what the bytes mean.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { RandomBelow } from '../raft/core-state.ts';
import type { HostPort } from '../src/api/node-address.ts';

/** What is wrong with one direction. Everything that is absent works. */
export interface Faults {
  /** Connections are reset, and new ones as soon as they are made. */
  readonly cut?: boolean;
  /** Bytes are read and lost. A connection that lost some is reset when the fault ends: a stream has no holes. */
  readonly blackHole?: boolean;
  /** Bytes are read and kept, as many as fit; when the fault ends they come in one burst. */
  readonly clog?: boolean;
  /** Nothing is read, so that the sender's own buffers fill up. */
  readonly neverRead?: boolean;
  readonly delayMillis?: number;
  /** A delay of 0 to this is added to each read. The order is kept, as TCP does. */
  readonly jitterMillis?: number;
  readonly bytesPerSecond?: number;
  /** One read in so many, by chance, has one bit flipped. */
  readonly flipOneIn?: number;
  /** One read in so many, by chance, is passed on in part, and then the connection is reset. */
  readonly resetOneIn?: number;
}

/** What a proxy holds back per connection and direction before it stops reading. */
const QUEUE_BYTES_MAX = 4 << 20;
/** Whoever dials again and again during a long fault leaves the oldest connections behind. */
const CONNECTIONS_MAX = 32;
/** A throttled direction passes on pieces of so many milliseconds' worth, but not smaller ones than this. */
const PIECE_MILLIS = 20;
const PIECE_BYTES_MIN = 256;

function holdsBack({ blackHole, clog, neverRead }: Faults): boolean {
  return blackHole === true || clog === true || neverRead === true;
}

/** One direction of a proxy: the faults of all its connections, and what they did. */
export class Direction {
  readonly #onChange: () => void;
  faults: Faults = {};
  bytesPassed = 0;
  bytesLost = 0;
  bitsFlipped = 0;
  resets = 0;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Replaces all faults at once. */
  set(faults: Faults): void {
    this.faults = faults;
    this.#onChange();
  }

  heal(): void {
    this.set({});
  }
}

type Item = { readonly dueMillis: number } & (
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'end' }
  | { readonly kind: 'reset' }
);

/** One direction of one connection. */
class Lane {
  readonly #direction: Direction;
  readonly #random: RandomBelow;
  readonly #source: Socket;
  readonly #reset: () => void;
  /** Undefined until the other side is connected. */
  #sink: Socket | undefined;
  #queue: Item[] = [];
  #queuedBytes = 0;
  /** No later than this will anything that follows be passed on. */
  #lastDueMillis = 0;
  #timer: NodeJS.Timeout | undefined;
  #isSinkFull = false;
  #hasHole = false;

  constructor(direction: Direction, random: RandomBelow, source: Socket, reset: () => void) {
    this.#direction = direction;
    this.#random = random;
    this.#source = source;
    this.#reset = reset;
    source.on('data', (bytes: Buffer) => this.#receive(bytes));
    source.once('end', () => this.#close('end'));
    source.once('error', () => this.#close('reset'));
  }

  connectTo(sink: Socket): void {
    this.#sink = sink;
    sink.on('drain', () => {
      this.#isSinkFull = false;
      this.#pump();
    });
    this.#pump();
  }

  /** The faults are others now. */
  changed(): void {
    const { faults } = this.#direction;
    if (faults.blackHole === true) this.#loseQueue();
    else if (this.#hasHole) {
      this.#reset();
      return;
    }
    const isSlow = faults.delayMillis !== undefined || faults.bytesPerSecond !== undefined;
    if (!isSlow) {
      this.#queue = this.#queue.map((item) => ({ ...item, dueMillis: 0 }));
      this.#lastDueMillis = 0;
    }
    this.#pump();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  #receive(bytes: Buffer): void {
    const { faults } = this.#direction;
    if (faults.blackHole === true) {
      this.#hasHole = true;
      this.#direction.bytesLost += bytes.byteLength;
      return;
    }
    if (faults.resetOneIn !== undefined && bytes.byteLength > 1 && this.#random(faults.resetOneIn) === 0) {
      this.#enqueue(bytes.subarray(0, 1 + this.#random(bytes.byteLength - 1)));
      this.#close('reset');
      return;
    }
    if (faults.flipOneIn !== undefined && this.#random(faults.flipOneIn) === 0) {
      const at = this.#random(bytes.byteLength);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << this.#random(8)), at);
      this.#direction.bitsFlipped += 1;
    }
    this.#enqueue(bytes);
  }

  #close(kind: 'end' | 'reset'): void {
    // During a black hole nobody hears of it, and the connection cannot go on after it.
    if (this.#direction.faults.blackHole === true) {
      this.#hasHole = true;
      return;
    }
    this.#queue.push({ kind, dueMillis: Math.max(this.#lastDueMillis, performance.now() + this.#delay()) });
    this.#pump();
  }

  #delay(): number {
    const { delayMillis = 0, jitterMillis = 0 } = this.#direction.faults;
    return delayMillis + (jitterMillis > 0 ? this.#random(jitterMillis + 1) : 0);
  }

  #enqueue(bytes: Buffer): void {
    const { bytesPerSecond } = this.#direction.faults;
    const pieceBytes =
      bytesPerSecond === undefined
        ? bytes.byteLength
        : Math.max(PIECE_BYTES_MIN, Math.floor((bytesPerSecond * PIECE_MILLIS) / 1_000));
    const earliestMillis = performance.now() + this.#delay();
    for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      const sendMillis = bytesPerSecond === undefined ? 0 : (piece.byteLength / bytesPerSecond) * 1_000;
      this.#lastDueMillis = Math.max(this.#lastDueMillis, earliestMillis) + sendMillis;
      this.#queue.push({ kind: 'bytes', bytes: piece, dueMillis: this.#lastDueMillis });
    }
    this.#queuedBytes += bytes.byteLength;
    this.#pump();
  }

  #loseQueue(): void {
    if (this.#queue.length === 0) return;
    this.#hasHole = true;
    this.#direction.bytesLost += this.#queuedBytes;
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  /** Passes on what is due, and reads on or not. */
  #pump(): void {
    clearTimeout(this.#timer);
    const sink = this.#sink;
    const { faults } = this.#direction;
    let passed = 0;
    while (sink !== undefined && !this.#isSinkFull && !holdsBack(faults)) {
      const item = this.#queue[passed];
      if (item === undefined) break;
      const waitMillis = item.dueMillis - performance.now();
      if (waitMillis > 0) {
        this.#timer = setTimeout(() => this.#pump(), waitMillis);
        break;
      }
      passed += 1;
      if (item.kind === 'reset') {
        this.#direction.resets += 1;
        this.#reset();
        return;
      }
      if (item.kind === 'end') sink.end();
      else this.#pass(item.bytes, sink);
    }
    if (passed > 0) this.#queue.splice(0, passed);
    const isFull = this.#queuedBytes >= QUEUE_BYTES_MAX && faults.blackHole !== true;
    if (faults.neverRead === true || isFull) this.#source.pause();
    else this.#source.resume();
  }

  #pass(bytes: Buffer, sink: Socket): void {
    this.#queuedBytes -= bytes.byteLength;
    if (sink.destroyed || sink.writableEnded) return;
    this.#direction.bytesPassed += bytes.byteLength;
    this.#isSinkFull = !sink.write(bytes);
  }
}

/** Node sends a FIN before the reset, so the other end may see either of them first. */
function resetSocket(socket: Socket): void {
  // A reset would wait for the connection, or for what is still to be sent.
  if (socket.connecting || socket.writableLength > 0) socket.destroy();
  else socket.resetAndDestroy();
}

/** One dialler, and the target on its behalf. */
class Connection {
  readonly #proxy: FaultProxy;
  readonly #client: Socket;
  readonly #random: RandomBelow;
  readonly #forward: Lane;
  #backward: Lane | undefined;
  #upstream: Socket | undefined;
  #openSockets = 1;
  readonly #onClosed: () => void;

  constructor(proxy: FaultProxy, client: Socket, random: RandomBelow, onClosed: () => void) {
    this.#proxy = proxy;
    this.#client = client;
    this.#random = random;
    this.#onClosed = onClosed;
    this.#watch(client);
    this.#forward = new Lane(proxy.forward, random, client, this.reset);
    this.changed();
  }

  changed(): void {
    const { forward, backward } = this.#proxy;
    if (forward.faults.cut === true || backward.faults.cut === true) {
      this.reset();
      return;
    }
    // The target hears of a connection no sooner than of what is sent on it.
    if (this.#upstream === undefined && !holdsBack(forward.faults)) this.#dial();
    this.#forward.changed();
    this.#backward?.changed();
  }

  /** Breaks the connection off on both sides. */
  readonly reset = (): void => {
    this.#forward.stop();
    this.#backward?.stop();
    if (this.#upstream !== undefined) resetSocket(this.#upstream);
    resetSocket(this.#client);
  };

  #dial(): void {
    const upstream = connect({ ...this.#proxy.target, noDelay: true, allowHalfOpen: true });
    this.#upstream = upstream;
    this.#openSockets += 1;
    this.#watch(upstream);
    upstream.once('connect', () => {
      upstream.off('error', this.reset);
      this.#forward.connectTo(upstream);
      this.#backward = new Lane(this.#proxy.backward, this.#random, upstream, this.reset);
      this.#backward.connectTo(this.#client);
    });
    upstream.once('error', this.reset);
  }

  #watch(socket: Socket): void {
    // Whether it matters is the lane's business.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#openSockets -= 1;
      if (this.#openSockets === 0) this.#onClosed();
    });
  }
}

export class FaultProxy {
  readonly target: HostPort;
  /** From who dials to the target. */
  readonly forward = new Direction(() => this.#changed());
  readonly backward = new Direction(() => this.#changed());
  readonly #random: RandomBelow;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();

  private constructor(target: HostPort, random: RandomBelow) {
    this.target = target;
    this.#random = random;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  /** Listens on a free port of the loopback interface. */
  static async listen(target: HostPort, random: RandomBelow): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, random);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Breaks all connections off; new ones work. */
  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#server.close(resolve);
    });
    this.reset();
    await closed;
  }

  #accept(client: Socket): void {
    const connection: Connection = new Connection(this, client, this.#random, () =>
      this.#connections.delete(connection),
    );
    this.#connections.add(connection);
    const [oldest] = this.#connections;
    if (this.#connections.size > CONNECTIONS_MAX) oldest?.reset();
  }

  #changed(): void {
    for (const connection of this.#connections) connection.changed();
  }
}
