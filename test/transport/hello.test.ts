/**
 * Tests the handshake: the dialling node introduces itself, and the answer is a welcome or a refusal with its reason.
 */
import { describe, expect, it } from 'vitest';
import { VERSIONS } from '../../src/api/versions.ts';
import { encodeWelcome } from '../../src/wire/hello.ts';
import { cleanupAfterEach, frameOf, freeAddress, incarnationOf, listed, Peer, RawServer } from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();

describe('a peer', () => {
  it('is found at the right one of several addresses, even if other servers answer at the others', async () => {
    const [one, two, three, nobody] = await addresses();
    const stranger = await Peer.start(cleanup, 3, new Map([[3, three]]));
    const b = await Peer.start(cleanup, 2, new Map([[2, two]]));
    const a = await Peer.start(
      cleanup,
      1,
      new Map([
        [1, [one]],
        [2, [three, nobody, two]],
      ]),
    );
    await a.connectedTo(2);
    expect(a.send(2, 'found')).toBe(true);
    await until('it is heard', () => b.textsFrom(1).includes('found'));
    expect(stranger.frames).toEqual([]);
    expect(a.count('refused by 2: wrongTarget')).toBe(1);
    expect(a.count('connected 2')).toBe(1);
  });

  it('that moved is found at its new address', async () => {
    const [one, two, moved] = await addresses();
    const old = new Map([
      [1, one],
      [2, two],
    ]);
    const a = await Peer.start(cleanup, 1, old);
    const b = await Peer.start(cleanup, 2, old);
    await a.connectedTo(2);
    await b.transport.close();
    const again = await Peer.start(
      cleanup,
      2,
      new Map([
        [1, one],
        [2, moved],
      ]),
    );
    await until('node 1 lost the connection', () => a.count('disconnected 2') === 1);
    await a.connectedTo(2);
    expect(a.send(2, 'there')).toBe(true);
    await until('it is heard', () => again.textsFrom(1).includes('there'));
  });

  it('with another database than the recorded one is refused', async () => {
    const [one, two] = await addresses();
    const peers = new Map([
      [1, one],
      [2, two],
    ]);
    const a = new Peer(1, peers);
    cleanup.add(() => a.transport.close());
    a.gate.recorded.set(2, 'another');
    await a.transport.start(a.handlers);
    await Peer.start(cleanup, 2, peers);
    await until('node 1 has tried it', () => a.count('refused by 2: wrongTarget') > 0);
    expect(a.count('connected 2')).toBe(0);
    expect(a.transport.isConnected(2)).toBe(false);
    a.gate.recorded.set(2, incarnationOf(2));
    a.transport.setPeers(listed(peers));
    await until('it has the right database again', () => a.transport.isConnected(2));
  });

  it('that turns out to have another database than the recorded one is disconnected', async () => {
    const { a, b } = await pair();
    a.gate.recorded.set(2, 'another');
    a.transport.recheck();
    await until('node 1 has disconnected from it', () => a.count('disconnected 2') === 1);
    await until('node 1 is refused', () => a.count('refused by 2: wrongTarget') > 0);
    // Node 2 sends on another connection, which node 1 judges separately.
    expect(b.transport.isConnected(1)).toBe(true);
  });

  it('that is not admitted any more gets the reason on its connection, and its frames are not accepted any more', async () => {
    const { a, b } = await pair();
    a.gate.unwelcome.set(2, 'otherIncarnation');
    a.transport.recheck();
    await until('it has the reason', () => b.count('refused by 1: otherIncarnation') === 1);
    await until('it is not connected', () => !b.transport.isConnected(1));
    expect(b.count('disconnected 1')).toBe(1);
    await until('node 1 counts it as lost', () => a.count('lost 2') === 1);
    expect(b.send(1, 'x')).toBe(false);
    a.transport.recheck();
    expect(b.count('refused by 1: otherIncarnation')).toBe(1);
  });

  it('that leaves does not dial any more', async () => {
    const { a, b } = await pair();
    a.transport.leave();
    await until('node 2 lost it', () => b.count('lost 1') === 1);
    a.transport.setPeers(new Map([[2, [b.address]]]));
    expect([...a.transport.peers]).toEqual([]);
    expect(a.transport.isConnected(2)).toBe(false);
    expect(a.count('connected 2')).toBe(1);
  });

  it('that sends its welcome after another database was recorded is refused', async () => {
    const slow = await RawServer.start(cleanup, () => {}, { isPolite: false });
    const [one] = await addresses();
    const a = await Peer.start(
      cleanup,
      1,
      new Map([
        [1, one],
        [2, slow.address],
      ]),
    );
    await until('it accepted', () => slow.sockets.length === 1);
    a.gate.recorded.set(2, 'another');
    a.transport.recheck();
    slow.sockets[0]?.write(
      frameOf('welcome', encodeWelcome({ incarnation: incarnationOf(2), speaks: VERSIONS })),
    );
    await until('it is dialled again', () => slow.sockets.length === 2);
    expect(a.count('connected 2')).toBe(0);
  });

  it('is not connected before its welcome', async () => {
    const silent = await RawServer.start(cleanup, () => {}, { isPolite: false });
    const [one] = await addresses();
    const a = await Peer.start(
      cleanup,
      1,
      new Map([
        [1, one],
        [2, silent.address],
      ]),
    );
    await until('it accepted', () => silent.sockets.length === 1);
    expect(a.transport.isConnected(2)).toBe(false);
    expect(a.send(2, 'x')).toBe(false);
    silent.sockets[0]?.write(frameOf('requests', 'x'));
    await until('it is dialled again', () => silent.sockets.length === 2);
    expect(a.count('connected 2')).toBe(0);
  });
});

type Address = Awaited<ReturnType<typeof freeAddress>>;

async function addresses(): Promise<[Address, Address, Address, Address]> {
  return [await freeAddress(), await freeAddress(), await freeAddress(), await freeAddress()];
}

/** Nodes 1 and 2, connected both ways. */
async function pair(): Promise<{ a: Peer; b: Peer }> {
  const [one, two] = await addresses();
  const peers = new Map([
    [1, one],
    [2, two],
  ]);
  const a = await Peer.start(cleanup, 1, peers);
  const b = await Peer.start(cleanup, 2, peers);
  await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
  return { a, b };
}
