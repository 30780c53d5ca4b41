/** Tests the protocol version that two nodes agree on, and the refusal if they have none in common. */
import { describe, expect, it } from 'vitest';
import { VERSIONS, type VersionRange } from '../../src/api/versions.ts';
import type { PeerAddress } from '../../src/transport/tcp-transport.ts';
import { clusterTag, encodeFrame, FrameDecoder, HANDSHAKE_VERSION } from '../../src/wire/frame.ts';
import { decodeHello, encodeHello, encodeWelcome, type Hello } from '../../src/wire/hello.ts';
import {
  CLUSTER,
  cleanupAfterEach,
  expectUnharmed,
  freeAddress,
  frameOf,
  helloFrame,
  incarnationOf,
  Peer,
  RawClient,
  RawServer,
} from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();
const TAG = clusterTag(CLUSTER);

/** The version in the first frame in these bytes. */
const versionOf = (frame: Buffer): number => frame.readUInt8(2);

const framed = (hello: Hello): Buffer => frameOf('hello', encodeHello(hello));

/** Starts node 1 with the next version. */
async function nextPeer(...peers: readonly (readonly [number, PeerAddress])[]): Promise<Peer> {
  const peer = new Peer(1, new Map(peers));
  peer.gate.versions = NEXT;
  cleanup.add(() => peer.transport.close());
  await peer.transport.start(peer.handlers);
  return peer;
}

async function pair(one: VersionRange, two: VersionRange): Promise<readonly [Peer, Peer]> {
  const peers = new Map([
    [1, await freeAddress()],
    [2, await freeAddress()],
  ]);
  const a = new Peer(1, peers);
  const b = new Peer(2, peers);
  for (const [peer, versions] of [
    [a, one],
    [b, two],
  ] as const) {
    peer.gate.versions = versions;
    cleanup.add(() => peer.transport.close());
    await peer.transport.start(peer.handlers);
  }
  return [a, b];
}

/** The versions that the next release supports. */
const NEXT: VersionRange = { min: VERSIONS.min, max: VERSIONS.max + 1 };
const NEXT_ALONE: VersionRange = { min: NEXT.max, max: NEXT.max };
const AFTER_NEXT: VersionRange = { min: NEXT.max, max: NEXT.max + 1 };

describe('two nodes', () => {
  it.each<[string, VersionRange, VersionRange]>([
    ['of this version', VERSIONS, VERSIONS],
    ['of which the first has the previous version', VERSIONS, NEXT],
    ['of which the second has the previous version', NEXT, VERSIONS],
    ['of the next version', NEXT, NEXT],
    ['of which one knows already that the cluster has the next version', NEXT_ALONE, NEXT],
    ['of which one is newer than the next', NEXT, AFTER_NEXT],
  ])('%s are connected', async (_, one, two) => {
    const [a, b] = await pair(one, two);
    await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
    expect(a.send(2, 'to b')).toBe(true);
    await until('node 2 has heard it', () => b.textsFrom(1).includes('to b'));
    await expectUnharmed(a, b, 'to a');
  });

  it.each<[string, VersionRange, VersionRange]>([
    ['the cluster is upgraded', NEXT_ALONE, VERSIONS],
    ['one is two versions ahead', VERSIONS, AFTER_NEXT],
  ])('without a common version refuse each other: %s', async (_, one, two) => {
    const [a, b] = await pair(one, two);
    await until('node 1 is refused', () => a.count('refused by 2: otherVersion') > 0);
    await until('node 2 is refused', () => b.count('refused by 1: otherVersion') > 0);
    expect([...a.events, ...b.events].filter((event) => /connected/.test(event))).toEqual([]);
    expect([a.count('unwelcome 2: otherVersion') > 0, b.count('unwelcome 1: otherVersion') > 0]).toEqual([
      true,
      true,
    ]);
  });

  it('disconnect when one of them learns of an upgrade and the other supports only older versions', async () => {
    const [a, b] = await pair(NEXT, VERSIONS);
    await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
    a.gate.versions = NEXT_ALONE;
    a.transport.recheck();
    await until('both have lost the other', () => !a.transport.isConnected(2) && !b.transport.isConnected(1));
    await until('node 2 has the reason', () => b.count('refused by 1: otherVersion') > 0);
    expect(a.count('connected 2')).toBe(1);
  });

  it('stay connected when one of them learns of an upgrade and both support the new version', async () => {
    const [a, b] = await pair(NEXT, NEXT);
    await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
    a.gate.versions = NEXT_ALONE;
    a.transport.recheck();
    await expectUnharmed(a, b, 'still here');
    expect(a.send(2, 'still there')).toBe(true);
    await until('node 2 has heard it', () => b.textsFrom(1).includes('still there'));
  });
});

describe('the frames of a connection', () => {
  it.each<[VersionRange, number]>([
    [VERSIONS, VERSIONS.max],
    [NEXT, NEXT.max],
    [{ min: NEXT.max, max: 200 }, NEXT.max],
  ])(
    'have the version of the handshake in it, and afterwards the agreed one: with %j %i',
    async (speaks, agreed) => {
      const said: Buffer[] = [];
      const server = await RawServer.start(
        cleanup,
        (socket) => socket.on('data', (bytes: Buffer) => said.push(bytes)).resume(),
        { isPolite: false },
      );
      const a = await nextPeer([1, await freeAddress()], [2, server.address]);
      await until('it sends its hello', () => said.length > 0);
      const [hello] = said.splice(0);
      expect(versionOf(hello ?? Buffer.alloc(3))).toBe(HANDSHAKE_VERSION);
      server.sockets[0]?.write(frameOf('welcome', encodeWelcome({ incarnation: incarnationOf(2), speaks })));
      await a.connectedTo(2);
      expect(a.send(2, 'x')).toBe(true);
      await until('it sends another frame', () => said.length > 0);
      expect(versionOf(Buffer.concat(said))).toBe(agreed);
    },
  );

  it('are accepted with the agreed version, and with no other', async () => {
    const address = await freeAddress();
    const a = await nextPeer([1, address]);
    const peer = await RawServer.start(cleanup);
    const hello: Hello = {
      node: 7,
      incarnation: 'seven',
      target: 1,
      facts: 'facts',
      peer: peer.address,
      speaks: NEXT,
    };
    const right = new RawClient(cleanup, address);
    right.write(framed(hello), encodeFrame('requests', Buffer.from('right'), TAG, NEXT.max));
    await until('it is heard', () => a.textsFrom(7).includes('right'));
    const wrong = new RawClient(cleanup, address);
    wrong.write(framed(hello), encodeFrame('requests', Buffer.from('wrong'), TAG, VERSIONS.max));
    await wrong.closed();
    const before = new RawClient(cleanup, address);
    before.write(
      framed({ ...hello, speaks: VERSIONS }),
      encodeFrame('requests', Buffer.from('before'), TAG, VERSIONS.max),
    );
    await until('it is heard', () => a.textsFrom(7).includes('before'));
    expect(a.textsFrom(7)).not.toContain('wrong');
  });

  it('begin with a hello that the first version can read', async () => {
    const decoded: Hello[] = [];
    new FrameDecoder(TAG).push(helloFrame(7, 1), ({ payload }) => decoded.push(decodeHello(payload)));
    expect(decoded).toMatchObject([{ node: 7, speaks: VERSIONS }]);
  });
});
