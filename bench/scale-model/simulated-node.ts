/**
 * Simulates the timing of a node, without its decisions. One thread handles in each turn all that arrived since the
 * last one, and combines it into one log entry for each partition, one frame for each peer and one write at a time,
 * like src/node.
 */
import type { Machine, Timeline } from './machine.ts';
import type { ServiceTimes } from './service-times.ts';

/** The requests that a client sent at once. */
export interface Call {
  readonly sentMicros: number;
  unanswered: number;
  readonly answered: () => void;
}

/** The requests of a call for one partition. */
export interface Requests {
  readonly call: Call;
  readonly partition: number;
  readonly count: number;
  front: SimulatedNode;
}

interface LogEntry {
  readonly leader: SimulatedNode;
  readonly requests: readonly Requests[];
  readonly count: number;
  copies: number;
}

interface Frame {
  readonly forwards: Requests[];
  readonly entries: LogEntry[];
  readonly acks: LogEntry[];
  readonly answers: Requests[];
}

export interface Surroundings {
  readonly timeline: Timeline;
  readonly times: ServiceTimes;
  /** Undefined while the partition has no leader. */
  readonly leaderOf: (partition: number) => SimulatedNode | undefined;
  /** All live replicas, including the leader. */
  readonly replicasOf: (partition: number) => readonly SimulatedNode[];
  /** Holds requests until the partition has a leader. */
  readonly leaderless: (requests: Requests) => void;
}

const QUORUM = 2;

export class SimulatedNode {
  /** Requests not decided yet. They are lost if the node dies. */
  readonly undecided = new Set<Requests>();
  isDown = false;
  readonly #machine: Machine;
  readonly #around: Surroundings;
  #calls: Requests[][] = [];
  #frames: Frame[] = [];
  #written: LogEntry[] = [];
  #otherMicros = 0;
  #toWrite: LogEntry[] = [];
  #isWriting = false;
  #isBusy = false;

  constructor(machine: Machine, around: Surroundings) {
    this.#machine = machine;
    this.#around = around;
  }

  /** Receives a call of a client. */
  ask(requests: Requests[]): void {
    this.#calls.push(requests);
    this.#wake();
  }

  receive(frame: Frame): void {
    if (this.isDown) {
      for (const requests of frame.forwards) this.#around.leaderless(requests);
      return;
    }
    this.#frames.push(frame);
    this.#wake();
  }

  /** Adds work that belongs to no request, such as a chunk of a snapshot. */
  workOn(micros: number): void {
    this.#otherMicros += micros;
    this.#wake();
  }

  #wake(): void {
    if (this.#isBusy || this.isDown) return;
    this.#isBusy = true;
    const turn = new Turn(this, this.#around);
    const { micros } = this.#take(turn);
    this.#machine.run(micros, () => this.#turned(turn));
  }

  /** Computes the cost of a turn. Its output leaves after that time. */
  #take(turn: Turn): Turn {
    const [calls, frames, written] = [this.#calls, this.#frames, this.#written];
    [this.#calls, this.#frames, this.#written] = [[], [], []];
    turn.micros += this.#otherMicros;
    this.#otherMicros = 0;
    for (const call of calls) turn.takeCall(call);
    for (const frame of frames) turn.takeFrame(frame);
    for (const entry of written) turn.takeWritten(entry);
    turn.propose();
    this.#toWrite.push(...turn.toWrite);
    if (!this.#isWriting && this.#toWrite.length > 0) turn.startWrite(this.#toWrite.splice(0));
    return turn;
  }

  #turned(turn: Turn): void {
    this.#isBusy = false;
    if (this.isDown) return;
    const { timeline, times } = this.#around;
    for (const [peer, frame] of turn.frames) timeline.after(times.network, () => peer.receive(frame));
    for (const requests of turn.answers) {
      requests.call.unanswered -= requests.count;
      if (requests.call.unanswered === 0) timeline.after(times.network, requests.call.answered);
    }
    if (turn.writes !== undefined) this.#write(turn.writes);
    if (this.#calls.length + this.#frames.length + this.#written.length > 0 || this.#canWrite) this.#wake();
  }

  get #canWrite(): boolean {
    return !this.#isWriting && this.#toWrite.length > 0;
  }

  #write(entries: readonly LogEntry[]): void {
    const { timeline, times } = this.#around;
    this.#isWriting = true;
    this.#machine.run(times.writeBehind, () =>
      timeline.after(times.sync, () => {
        this.#isWriting = false;
        this.#written.push(...entries);
        this.#wake();
      }),
    );
  }
}

/** One turn of a node, with its cost and its output. */
class Turn {
  micros: number;
  readonly frames = new Map<SimulatedNode, Frame>();
  readonly answers: Requests[] = [];
  readonly toWrite: LogEntry[] = [];
  writes: readonly LogEntry[] | undefined;
  readonly #node: SimulatedNode;
  readonly #around: Surroundings;
  readonly #proposals = new Map<number, Requests[]>();

  constructor(node: SimulatedNode, around: Surroundings) {
    this.#node = node;
    this.#around = around;
    this.micros = around.times.turn;
  }

  takeCall(call: readonly Requests[]): void {
    const { times } = this.#around;
    this.micros += times.call;
    for (const requests of call) {
      this.micros += times.request * requests.count;
      this.#route(requests);
    }
  }

  takeFrame({ forwards, entries, acks, answers }: Frame): void {
    const { times } = this.#around;
    this.micros += times.frame;
    for (const requests of forwards) {
      this.micros += times.forward * requests.count;
      this.#route(requests);
    }
    for (const entry of entries) {
      this.micros += times.entry + times.copy * entry.count;
      this.toWrite.push(entry);
    }
    for (const entry of acks) this.#stored(entry);
    for (const requests of answers) {
      this.micros += times.forward * requests.count;
      this.answers.push(requests);
    }
  }

  /** Called when this node has the entry on disk. */
  takeWritten(entry: LogEntry): void {
    if (entry.leader === this.#node) this.#stored(entry);
    else this.#frameTo(entry.leader).acks.push(entry);
  }

  #stored(entry: LogEntry): void {
    entry.copies += 1;
    if (entry.copies !== QUORUM) return;
    for (const requests of entry.requests) {
      this.#node.undecided.delete(requests);
      if (requests.front === this.#node) this.answers.push(requests);
      else this.#frameTo(requests.front).answers.push(requests);
    }
  }

  #route(requests: Requests): void {
    const leader = this.#around.leaderOf(requests.partition);
    if (leader === undefined) this.#around.leaderless(requests);
    else if (leader === this.#node) {
      this.#node.undecided.add(requests);
      const proposal = this.#proposals.get(requests.partition);
      if (proposal === undefined) this.#proposals.set(requests.partition, [requests]);
      else proposal.push(requests);
    } else {
      this.micros += this.#around.times.forward * requests.count;
      this.#frameTo(leader).forwards.push(requests);
    }
  }

  propose(): void {
    const { times, replicasOf } = this.#around;
    for (const [partition, requests] of this.#proposals) {
      const count = requests.reduce((sum, each) => sum + each.count, 0);
      const entry = { leader: this.#node, requests, count, copies: 0 };
      this.micros += times.entry + times.copy * count;
      this.toWrite.push(entry);
      for (const replica of replicasOf(partition))
        if (replica !== this.#node) this.#frameTo(replica).entries.push(entry);
    }
    this.micros += times.frame * this.frames.size;
  }

  startWrite(entries: readonly LogEntry[]): void {
    this.micros += this.#around.times.write;
    this.writes = entries;
  }

  #frameTo(peer: SimulatedNode): Frame {
    let frame = this.frames.get(peer);
    if (frame === undefined) {
      frame = { forwards: [], entries: [], acks: [], answers: [] };
      this.frames.set(peer, frame);
    }
    return frame;
  }
}
