/** From each simulated node to each other one: the connection it dialled, and the frames on their way. */
import type { NodeId } from '../../raft/types.ts';
import type { Hello, Sender } from '../../src/wire/hello.ts';
import type { FrameDecoder, FrameType } from '../../src/wire/frame.ts';
import type { Random } from './random.ts';
import type { NetworkSettings } from './settings.ts';

export interface Frame {
  readonly type: FrameType;
  readonly payload: Uint8Array;
  readonly epoch: number;
  readonly sender: Sender;
  /** The incarnation that was connected to: no other one ever reads it. */
  readonly reached: string;
}

export interface Path {
  readonly from: NodeId;
  readonly to: NodeId;
  /** The connection `from` dialled. */
  connected: boolean;
  /** The hello sent on it. */
  hello: Hello | undefined;
  reached: string;
  /** Counts connections. */
  epoch: number;
  failures: number;
  cut: boolean;
  /** Counts cuts. */
  cuts: number;
  /** Frames that wait behind a cut, oldest first. */
  held: Frame[];
  /** Added to every delay. */
  readonly slowMillis: number;
  readonly crawlMillis: number;
  /** Nothing on this connection arrives before this. */
  busyUntil: number;
  /** The receiver's decoder, once some bytes of this connection were damaged. */
  decoder: FrameDecoder | undefined;
}

export class Paths {
  readonly #paths = new Map<number, Path>();

  constructor(ids: readonly NodeId[], settings: NetworkSettings, random: Random) {
    for (const from of ids) {
      for (const to of ids) {
        if (from === to) continue;
        this.#paths.set(keyOf(from, to), {
          from,
          to,
          connected: false,
          hello: undefined,
          reached: '',
          epoch: 0,
          failures: 0,
          cut: false,
          cuts: 0,
          held: [],
          slowMillis: random.chance(settings.slowFraction) ? settings.slowMillis : 0,
          crawlMillis: random.chance(settings.crawlFraction) ? settings.crawlMillis : 0,
          busyUntil: 0,
          decoder: undefined,
        });
      }
    }
  }

  get(from: NodeId, to: NodeId): Path {
    const path = this.#paths.get(keyOf(from, to));
    if (path === undefined) throw new RangeError(`there is no path from ${from} to ${to}`);
    return path;
  }

  all(): Iterable<Path> {
    return this.#paths.values();
  }
}

function keyOf(from: NodeId, to: NodeId): number {
  return from * 64 + to;
}
