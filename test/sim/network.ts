/**
 * The network between simulated nodes. As in TCP, each node sends on the connections it dialled; frames of one
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
} from '../../src/transport/frame.ts';
import type { CoreFrame } from '../../src/node-core.ts';
import type { Random } from './random.ts';
import type { NetworkSettings } from './settings.ts';
import type { Story } from './story.ts';

export type PeerFrame = CoreFrame;

export interface Endpoint {
  readonly id: NodeId;
  readonly isUp: boolean;
  receive(from: NodeId, type: FrameType, payload: Uint8Array): void;
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
}

interface Frame {
  readonly type: FrameType;
  readonly payload: Uint8Array;
  readonly epoch: number;
}

interface Path {
  readonly from: NodeId;
  readonly to: NodeId;
  /** The connection `from` dialled. */
  connected: boolean;
  /** Counts connections. */
  epoch: number;
  failures: number;
  cut: boolean;
  /** Counts cuts. */
  cuts: number;
  /** Behind a cut, oldest first. */
  held: Frame[];
  /** On top of every delay. */
  readonly slowMillis: number;
  /** Nothing on this connection arrives before this. */
  busyUntil: number;
  /** What the receiver makes of the bytes, since some of this connection were damaged. */
  decoder: FrameDecoder | undefined;
}

const TAG = clusterTag('sim');
const HELD_MAX = 200;
const SILENT_MILLIS_MAX = 5_000;
const RECONNECT_MILLIS_MIN = 50;
const RECONNECT_MILLIS_MAX = 1_000;
const LATE_MILLIS_MAX = 3_000;

export class SimNetwork {
  readonly #init: NetworkInit;
  readonly #paths = new Map<number, Path>();
  /** No more chance from now on between these nodes. */
  #reliable: ReadonlySet<NodeId> = new Set();

  constructor(init: NetworkInit) {
    this.#init = init;
    for (const from of init.ids) {
      for (const to of init.ids) {
        if (from === to) continue;
        this.#paths.set(from * 64 + to, {
          from,
          to,
          connected: false,
          epoch: 0,
          failures: 0,
          cut: false,
          cuts: 0,
          held: [],
          slowMillis: init.random.chance(init.settings.slowShare) ? init.settings.slowMillis : 0,
          busyUntil: 0,
          decoder: undefined,
        });
      }
    }
  }

  #path(from: NodeId, to: NodeId): Path {
    const path = this.#paths.get(from * 64 + to);
    if (path === undefined) throw new RangeError(`there is no path from ${from} to ${to}`);
    return path;
  }

  isConnected(from: NodeId, to: NodeId): boolean {
    return this.#path(from, to).connected;
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#path(from, to).cut;
  }

  makeReliable(nodes: readonly NodeId[]): void {
    this.#reliable = new Set(nodes);
  }

  send(from: NodeId, to: NodeId, type: PeerFrame, payload: Uint8Array): boolean {
    const path = this.#path(from, to);
    if (!path.connected) return false;
    const { random, settings, story } = this.#init;
    const isReliable = this.#reliable.has(from) && this.#reliable.has(to);
    const frame = { type, payload, epoch: path.epoch };
    if (!isReliable && settings.drop > 0 && random.chance(settings.drop)) {
      story.faults.set('drop', (story.faults.get('drop') ?? 0) + 1);
      return true;
    }
    if (path.cut) {
      // A full socket: what does not fit is lost, as behind a slow peer.
      if (path.held.length < HELD_MAX) path.held.push(frame);
      return true;
    }
    this.#carry(path, frame);
    // The transport repeats nothing, but what Raft says may come twice.
    if (!isReliable && type === 'peerMessages' && random.chance(settings.duplicate)) {
      story.faults.set('duplicate', (story.faults.get('duplicate') ?? 0) + 1);
      this.#init.after(random.unit() * LATE_MILLIS_MAX, () => this.#hand(path, frame));
    }
    return true;
  }

  #carry(path: Path, frame: Frame): void {
    const { random, settings, now } = this.#init;
    const delay = path.slowMillis + settings.delayMinMillis + random.exponential(settings.delayMeanMillis);
    path.busyUntil = Math.max(path.busyUntil, now() + delay);
    this.#init.after(path.busyUntil - now(), () => this.#arrive(path, frame));
  }

  #arrive(path: Path, frame: Frame): void {
    if (frame.epoch === path.epoch) {
      // Cut while it was on its way: it waits with the others.
      if (!path.cut) this.#read(path, frame);
      else if (path.held.length < HELD_MAX) path.held.push(frame);
      return;
    }
    const { random, settings, story } = this.#init;
    if (frame.type !== 'peerMessages' || !random.chance(settings.late)) return;
    story.faults.set('late', (story.faults.get('late') ?? 0) + 1);
    this.#init.after(random.unit() * LATE_MILLIS_MAX, () => this.#hand(path, frame));
  }

  /** The receiver reads the bytes of a frame, which may have been damaged on the way. */
  #read(path: Path, frame: Frame): void {
    const { random, settings, story } = this.#init;
    const isReliable = this.#reliable.has(path.from) && this.#reliable.has(path.to);
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
      path.decoder.push(bytes, ({ type, payload }) =>
        this.#hand(path, { type, payload, epoch: frame.epoch }),
      );
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      story.tell(() => `node ${path.to} closes the connection from ${path.from}: ${error.message}`);
      this.#break(path, false);
    }
  }

  #hand(path: Path, frame: Frame): void {
    const target = this.#init.endpoint(path.to);
    if (!target.isUp) return;
    this.#init.story.step(1, path.from, path.to);
    target.receive(path.from, frame.type, frame.payload);
  }

  /** A process started: it dials everybody. */
  started(node: NodeId): void {
    for (const path of this.#paths.values()) {
      if (path.from !== node) continue;
      path.failures = 0;
      this.#dial(path, path.epoch);
    }
  }

  #dial(path: Path, epoch: number): void {
    const { endpoint, after, random } = this.#init;
    if (path.connected || path.epoch !== epoch || !endpoint(path.from).isUp) return;
    const isOpen = !path.cut && !this.isCut(path.to, path.from) && endpoint(path.to).isUp;
    if (isOpen) {
      path.connected = true;
      path.failures = 0;
      return;
    }
    const wait = Math.min(RECONNECT_MILLIS_MAX, RECONNECT_MILLIS_MIN * 2 ** Math.min(path.failures, 6));
    path.failures += 1;
    after(wait * (0.5 + random.unit() / 2), () => this.#dial(path, epoch));
  }

  /** A process died: its connections break, and those who can still hear from its machine learn of it. */
  ended(node: NodeId): void {
    for (const path of this.#paths.values()) {
      if (path.from === node || path.to === node) this.#break(path, path.from === node);
    }
  }

  /** One connection breaks, and is dialled again. */
  break(from: NodeId, to: NodeId): void {
    this.#break(this.#path(from, to), false);
  }

  #break(path: Path, senderIsGone: boolean): void {
    if (!path.connected) {
      path.epoch += 1;
      if (!senderIsGone) this.#redial(path);
      return;
    }
    path.connected = false;
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
      if (target.isUp && path.epoch === epoch) target.peerLost(from);
    });
    if (senderIsGone) return;
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
    const path = this.#path(from, to);
    if (path.cut) return;
    path.cut = true;
    path.cuts += 1;
    const { cuts } = path;
    if (!this.#init.settings.closesSilent) return;
    // Whoever hears nothing for so long closes, and dials anew: both directions.
    this.#init.after(SILENT_MILLIS_MAX, () => {
      if (!path.cut || path.cuts !== cuts) return;
      this.#break(path, false);
      this.#break(this.#path(to, from), false);
    });
  }

  /** What waited arrives in one burst. */
  heal(from: NodeId, to: NodeId): void {
    const path = this.#path(from, to);
    if (!path.cut) return;
    path.cut = false;
    for (const frame of path.held.splice(0)) this.#carry(path, frame);
  }
}
