/** How streams of snapshots end, depending on the acknowledgements of the receiver. */
import { setImmediate as afterReads } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { OutgoingSnapshots } from '../../../raft/driver/outgoing-snapshots.ts';
import type { SnapshotChunk } from '../../../raft/driver/peer-message.ts';
import type { LogStore } from '../../../raft/driver/store.ts';
import type { InstallSnapshot, SnapshotFate, SnapshotMeta } from '../../../raft/types.ts';

const GROUP = 5;
const PEER = 2;
const SILENT_TICKS_MAX = 4;
const META = { index: 9, term: 1, chunkCount: 3, byteLength: 3 } as unknown as SnapshotMeta;

class Sender {
  readonly sent: SnapshotChunk[] = [];
  readonly fates: SnapshotFate[] = [];
  readonly outgoing = new OutgoingSnapshots({
    id: 1,
    store: { readSnapshotChunk: async () => Promise.resolve(Buffer.of(0)) } as unknown as LogStore,
    options: { outgoingMax: 4, silentTicksMax: SILENT_TICKS_MAX },
    send: (_, chunk) => this.sent.push(chunk),
    done: (_, __, fate) => this.fates.push(fate),
    failed: (error) => expect.fail(String(error)),
  });

  async start(term: number): Promise<void> {
    this.outgoing.start(GROUP, { to: PEER, term, timeMillis: 0 } as InstallSnapshot, META);
    await afterReads();
  }

  /** The peer has this many chunks. */
  async acknowledge(held: number): Promise<void> {
    const { index, term: snapshotTerm } = META;
    this.outgoing.acknowledged({
      kind: 'chunkAck',
      group: GROUP,
      from: PEER,
      index,
      snapshotTerm,
      held,
    });
    await afterReads();
  }

  beSilent(): void {
    for (let i = 0; i <= SILENT_TICKS_MAX; i += 1) this.outgoing.tick();
  }
}

describe('a stream of a snapshot', () => {
  it('counts as refused if the peer acknowledges all but its last chunk, and as broken if it acknowledges fewer', async () => {
    const fates: SnapshotFate[] = [];
    for (const held of [0, 1, 2]) {
      const sender = new Sender();
      await sender.start(1);
      for (let i = 1; i <= held; i += 1) await sender.acknowledge(i);
      sender.beSilent();
      fates.push(...sender.fates);
    }
    expect(fates).toEqual(['broken', 'broken', 'refused']);
  });

  it('ends as broken when the connection is lost, and as arrived when its last chunk is acknowledged', async () => {
    const [lost, whole] = [new Sender(), new Sender()];
    await lost.start(1);
    lost.outgoing.peerLost(PEER);
    await whole.start(1);
    for (const held of [1, 2, 3]) await whole.acknowledge(held);
    expect([lost.fates, whole.fates]).toEqual([['broken'], ['arrived']]);
  });

  it('is replaced by one of a later term, not by another of its own term', async () => {
    const sender = new Sender();
    await sender.start(1);
    await sender.start(1);
    expect(sender.fates).toEqual(['broken']);
    await sender.start(2);
    expect(sender.fates).toEqual(['broken']);
    expect(sender.sent.map(({ term, chunk }) => [term, chunk])).toEqual([
      [1, 0],
      [2, 0],
    ]);
  });
});
