/**
 * The network between simulated nodes. As in TCP, each node sends on the connections that it dialled, and frames of one
 * connection arrive in order. Paths can be cut one way or both: then frames wait and arrive in a burst when the path
 * heals, unless the connection broke before.
 */
import type { NodeId } from '../../raft/types.ts';
import {
  clusterTag,
  encodeFrame,
  FrameDecoder,
  FrameError,
  type FrameType,
  type PeerFrameType,
} from '../../src/wire/frame.ts';
import type { Hello, Refusal, Sender } from '../../src/wire/hello.ts';
import { Censor } from './censor.ts';
import { type Frame, type Path, Paths } from './paths.ts';
import type { Random } from './random.ts';
import type { NetworkSettings } from './settings.ts';
import type { Story } from './story.ts';

export interface Endpoint {
  readonly id: NodeId;
  readonly isUp: boolean;
  /** The incarnation of its database. */
  readonly incarnation: string;
  /** Whether its process reads incoming frames. */
  readonly isRunning: boolean;
  /** Its hello when it dials; undefined: it dials no node any more. */
  hello(to: NodeId): Hello | undefined;
  /** Why it refuses this hello; undefined: it accepts. */
  refusalOf(hello: Hello): Refusal | undefined;
  introduced(hello: Hello): void;
  welcomedBy(peer: NodeId): void;
  refusedBy(peer: NodeId, refusal: Refusal): void;
  receive(from: Sender, type: FrameType, payload: Uint8Array): void;
  peerLost(peer: NodeId): void;
  peerDisconnected(peer: NodeId): void;
}

export interface NetworkInit {
  readonly settings: NetworkSettings;
  readonly random: Random;
  readonly story: Story;
  readonly endpoint: (id: NodeId) => Endpoint;
  readonly ids: readonly NodeId[];
  readonly after: (delayMillis: number, run: () => void) => void;
  readonly now: () => number;
  /** A connection broke that `from` had dialled and still wants. */
  readonly broke?: (from: NodeId) => void;
}

const TAG = clusterTag('sim');
const HELD_MAX = 200;
const SILENT_MILLIS_MAX = 5_000;
const RECONNECT_MILLIS_MIN = 50;
const RECONNECT_MILLIS_MAX = 1_000;
const REFUSED_MILLIS = 5_000;
const LATE_MILLIS_MAX = 3_000;
/** Frames from before a broken connection are read by then. */
const READ_MILLIS_MAX = 300;

export class SimNetwork {
  readonly #init: NetworkInit;
  readonly #paths: Paths;
  readonly censor = new Censor();
  /** No more randomness from now on between these nodes. */
  #reliable: ReadonlySet<NodeId> = new Set();

  constructor(init: NetworkInit) {
    this.#init = init;
    this.#paths = new Paths(init.ids, init.settings, init.random);
  }

  isConnected(from: NodeId, to: NodeId): boolean {
    return this.#paths.get(from, to).connected;
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#paths.get(from, to).cut;
  }

  makeReliable(nodes: readonly NodeId[]): void {
    this.#reliable = new Set(nodes);
  }

  send(from: NodeId, to: NodeId, type: PeerFrameType, payload: Uint8Array): boolean {
    const path = this.#paths.get(from, to);
    const { hello: sender, reached, epoch } = path;
    if (!path.connected || sender === undefined) return false;
    const rest = type === 'peerMessages' ? this.censor.passed(from, to, payload) : [payload];
    for (const passed of rest) this.#send(path, { type, payload: passed, epoch, sender, reached });
    return true;
  }

  #send(path: Path, frame: Frame): void {
    const { random, settings, story } = this.#init;
    const isReliable = this.#isReliable(path);
    if (!isReliable && settings.drop > 0 && random.chance(settings.drop)) {
      story.faults.set('drop', (story.faults.get('drop') ?? 0) + 1);
      return;
    }
    if (path.cut) {
      // A full socket: frames that do not fit are lost, as behind a slow peer.
      if (path.held.length < HELD_MAX) path.held.push(frame);
      return;
    }
    this.#carry(path, frame);
    // The transport repeats nothing, but messages of Raft may come twice.
    if (!isReliable && frame.type === 'peerMessages' && random.chance(settings.duplicate)) {
      story.faults.set('duplicate', (story.faults.get('duplicate') ?? 0) + 1);
      this.#init.after(random.unit() * LATE_MILLIS_MAX, () => this.#hand(path, frame));
    }
  }

  #isReliable({ from, to }: Path): boolean {
    return this.#reliable.has(from) && this.#reliable.has(to);
  }

  #carry(path: Path, frame: Frame): void {
    const { random, settings, now } = this.#init;
    const isReliable = this.#isReliable(path);
    const slowMillis = path.slowMillis + (isReliable ? 0 : path.crawlMillis);
    const delay = slowMillis + settings.delayMinMillis + random.exponential(settings.delayMeanMillis);
    path.busyUntil = Math.max(path.busyUntil, now() + delay);
    this.#init.after(path.busyUntil - now(), () => this.#arrive(path, frame));
  }

  #arrive(path: Path, frame: Frame): void {
    if (frame.epoch === path.epoch) {
      // If the path was cut meanwhile, the frame waits with the others.
      if (!path.cut) this.#read(path, frame);
      else if (path.held.length < HELD_MAX) path.held.push(frame);
      return;
    }
    const { random, settings, story } = this.#init;
    if (this.#isReliable(path) || !random.chance(settings.late)) return;
    story.faults.set('late', (story.faults.get('late') ?? 0) + 1);
    const lateMillisMax = frame.type === 'peerMessages' ? LATE_MILLIS_MAX : READ_MILLIS_MAX;
    this.#init.after(random.unit() * lateMillisMax, () => this.#hand(path, frame));
  }

  /** The receiver reads the bytes of a frame, which may have been damaged on the way. */
  #read(path: Path, frame: Frame): void {
    const { random, settings, story } = this.#init;
    const isReliable = this.#isReliable(path);
    const isDamaged = settings.corrupt > 0 && !isReliable && random.chance(settings.corrupt);
    if (!isDamaged && path.decoder === undefined) {
      this.#hand(path, frame);
      return;
    }
    const bytes = encodeFrame(frame.type, frame.payload, TAG);
    if (isDamaged) {
      const at = random.below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
      story.fault('corrupt', `(byte ${at} of ${bytes.length}, ${path.from} > ${path.to})`);
    }
    path.decoder ??= new FrameDecoder(TAG);
    try {
      path.decoder.push(bytes, ({ type, payload }) => this.#hand(path, { ...frame, type, payload }));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      story.report(() => `node ${path.to} closes the connection from ${path.from}: ${error.message}`);
      this.#break(path, false);
    }
  }

  #hand(path: Path, frame: Frame): void {
    const target = this.#init.endpoint(path.to);
    if (!target.isUp || target.incarnation !== frame.reached) return;
    this.#init.story.step(1, path.from, path.to);
    target.receive(frame.sender, frame.type, frame.payload);
  }

  /** A process started: it dials all nodes. */
  started(node: NodeId): void {
    for (const path of this.#paths.all()) {
      if (path.from !== node) continue;
      path.failures = 0;
      this.#dial(path, path.epoch);
    }
  }

  #dial(path: Path, epoch: number): void {
    const { endpoint, after, random } = this.#init;
    if (path.connected || path.epoch !== epoch || !endpoint(path.from).isUp) return;
    const hello = endpoint(path.from).hello(path.to);
    if (hello === undefined) return;
    const target = endpoint(path.to);
    const isOpen = !path.cut && !this.isCut(path.to, path.from) && target.isRunning;
    const refusal = isOpen ? target.refusalOf(hello) : undefined;
    if (isOpen && refusal === undefined) {
      path.connected = true;
      path.hello = hello;
      path.reached = target.incarnation;
      path.failures = 0;
      target.introduced(hello);
      endpoint(path.from).welcomedBy(path.to);
      return;
    }
    if (refusal !== undefined) this.#refused(path, refusal);
    const usual = Math.min(RECONNECT_MILLIS_MAX, RECONNECT_MILLIS_MIN * 2 ** Math.min(path.failures, 6));
    const wait = refusal === undefined ? usual : REFUSED_MILLIS;
    path.failures += 1;
    after(wait * (0.5 + random.unit() / 2), () => this.#dial(path, epoch));
  }

  #refused(path: Path, refusal: Refusal): void {
    this.#init.story.report(() => `node ${path.to} refuses node ${path.from}: ${refusal.text}`);
    this.#init.endpoint(path.from).refusedBy(path.to, refusal);
  }

  /** The set of nodes that `node` accepts has changed. */
  recheck(node: NodeId): void {
    const { endpoint } = this.#init;
    for (const path of this.#paths.all()) {
      if (!path.connected || path.hello === undefined) continue;
      if (path.to === node) {
        const refusal = endpoint(node).refusalOf(path.hello);
        if (refusal === undefined) continue;
        this.#refused(path, refusal);
        this.#break(path, false);
      } else if (path.from === node) {
        const { targetIncarnation } = endpoint(node).hello(path.to) ?? {};
        if (targetIncarnation !== undefined && path.reached !== targetIncarnation) this.#break(path, false);
      }
    }
  }

  /** A node dials no other node any more. */
  leave(node: NodeId): void {
    for (const path of this.#paths.all()) if (path.from === node) this.#break(path, true);
  }

  /** A process died: its connections break, and nodes that can still hear its machine learn of it. */
  ended(node: NodeId): void {
    for (const path of this.#paths.all()) {
      if (path.from === node || path.to === node) this.#break(path, path.from === node);
    }
  }

  /** One connection breaks, and is dialled again. */
  break(from: NodeId, to: NodeId): void {
    this.#break(this.#paths.get(from, to), false);
  }

  #break(path: Path, senderIsGone: boolean): void {
    if (!path.connected) {
      path.epoch += 1;
      if (!senderIsGone) this.#redial(path);
      return;
    }
    path.connected = false;
    path.hello = undefined;
    path.decoder = undefined;
    path.epoch += 1;
    path.busyUntil = 0;
    const held = path.held.splice(0);
    for (const frame of held) if (!path.cut) this.#arrive(path, frame);
    const { endpoint, after, random } = this.#init;
    const { from, to, epoch } = path;
    const soon = (cut: boolean): number => (cut ? SILENT_MILLIS_MAX : 0) + random.exponential(1);
    after(soon(path.cut), () => {
      const target = endpoint(to);
      // A node that has dialled again meanwhile is connected.
      if (target.isUp && path.epoch === epoch && !path.connected) target.peerLost(from);
    });
    if (senderIsGone) return;
    this.#init.broke?.(from);
    const target = endpoint(from);
    if (target.isUp) target.peerDisconnected(to);
    this.#redial(path);
  }

  #redial(path: Path): void {
    const { epoch } = path;
    const { after, random } = this.#init;
    after(RECONNECT_MILLIS_MIN * (0.5 + random.unit() / 2), () => this.#dial(path, epoch));
  }

  /** Nothing passes in this direction until it is healed. */
  cut(from: NodeId, to: NodeId): void {
    const path = this.#paths.get(from, to);
    if (path.cut) return;
    path.cut = true;
    path.cuts += 1;
    const { cuts } = path;
    if (!this.#init.settings.closesSilent) return;
    // A node that hears nothing for this long closes both directions and dials anew.
    this.#init.after(SILENT_MILLIS_MAX, () => {
      if (!path.cut || path.cuts !== cuts) return;
      this.#break(path, false);
      this.#break(this.#paths.get(to, from), false);
    });
  }

  /** Frames that waited arrive in one burst. */
  heal(from: NodeId, to: NodeId): void {
    const path = this.#paths.get(from, to);
    if (!path.cut) return;
    path.cut = false;
    for (const frame of path.held.splice(0)) this.#carry(path, frame);
  }
}
