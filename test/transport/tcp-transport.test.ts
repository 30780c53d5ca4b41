/** Tests the transport between nodes: delivery, reconnects, and misbehaving connections. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { TcpTransport } from '../../src/transport/tcp-transport.ts';
import {
  Cleanup,
  cleanupAfterEach,
  expectUnharmed,
  frameOf,
  freeAddress,
  helloFrame,
  listed,
  pairAndStranger,
  Peer,
  RawClient,
  RawServer,
  withoutSilence,
} from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();

beforeEach(() => withoutSilence(cleanup));

describe('two nodes', () => {
  it('deliver frames in order, both ways, for any size', async () => {
    const { a, b } = await pairAndStranger(cleanup);
    const sizes = Array.from({ length: 400 }, (_, i) => (i % 50 === 0 ? 100_000 + i : i));
    const texts = sizes.map((size, i) => `${i}:${'x'.repeat(size)}`);
    for (const text of texts) {
      expect(a.send(2, text)).toBe(true);
      expect(b.send(1, text)).toBe(true);
    }
    await until(
      'everything arrived',
      () => a.frames.length >= texts.length && b.frames.length >= texts.length,
    );
    expect(a.textsFrom(2)).toEqual(texts);
    expect(b.textsFrom(1)).toEqual(texts);
    expect(a.frames.every(({ type }) => type === 'requests')).toBe(true);
  });

  it('send all frames of one turn in one write, at its end', async () => {
    // A keep-alive would be a separate write.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { a, b } = await pairAndStranger(cleanup);
    a.heldTurn = [];
    for (const text of ['one', 'two', 'three']) a.send(2, text);
    b.send(1, 'meanwhile');
    await until('frames arrive in the other direction', () => a.textsFrom(2).length === 1);
    expect(b.textsFrom(1)).toEqual([]);
    expect(a.heldTurn).toHaveLength(1);
    a.heldTurn.pop()?.();
    await until('all are heard', () => b.textsFrom(1).length === 3);
    expect(b.textsFrom(1)).toEqual(['one', 'two', 'three']);
  });

  it('get the last frames of a node that closes within a turn', async () => {
    const { a, b } = await pairAndStranger(cleanup);
    a.heldTurn = [];
    a.send(2, 'farewell');
    await a.transport.close();
    await until('a frame arrives', () => b.textsFrom(1).length > 0);
    expect(b.textsFrom(1)).toEqual(['farewell']);
  });

  it('send nothing to a node that is down, to unknown nodes or to themselves', async () => {
    const { a } = await pairAndStranger(cleanup, await freeAddress());
    expect([a.send(3, 'x'), a.send(4, 'x'), a.send(1, 'x')]).toEqual([false, false, false]);
  });

  it('connect again when one restarts', async () => {
    const { a, b, peers } = await pairAndStranger(cleanup);
    await b.transport.close();
    await until('node 1 noticed', () => a.count('disconnected 2') === 1 && a.count('lost 2') === 1);
    expect(a.send(2, 'to nobody')).toBe(false);

    const again = await Peer.start(cleanup, 2, peers);
    await Promise.all([a.connectedTo(2), again.connectedTo(1)]);
    a.send(2, 'welcome back');
    again.send(1, 'thanks');
    await until('both are heard', () => again.textsFrom(1).length === 1 && a.textsFrom(2).length === 1);
    expect(a.count('connected 2')).toBe(2);
    expect(a.count('disconnected 2')).toBe(1);
    expect(a.count('lost 2')).toBe(1);
  });

  it('do not start on an address that is in use', async () => {
    const { address } = await RawServer.start(cleanup);
    const peer = new Peer(1, new Map([[1, address]]));
    await expect(peer.transport.start(peer.handlers)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await peer.transport.close();
  });
});

describe('an unknown node', () => {
  it('introduces itself, and stays while others become peers', async () => {
    const { a, b, peers } = await pairAndStranger(cleanup);
    const address = await freeAddress();
    const nine = await Peer.start(cleanup, 9, new Map([...peers, [9, address]]));
    await a.connectedTo(9);
    expect(a.send(9, 'welcome')).toBe(true);
    expect(nine.send(1, 'thanks')).toBe(true);
    await until('both heard the other', () => nine.frames.length === 1 && a.frames.length === 1);
    a.transport.setPeers(listed(peers));
    a.transport.setPeers(listed(new Map([...peers, [9, address]])));
    expect([...a.transport.peers]).toEqual([2, 3, 9]);
    await expectUnharmed(a, b, 'after');
    expect(a.count('disconnected 9') + a.count('lost 9')).toBe(0);
  });

  it('is forgotten when its connection ends, and refused once it is known to be removed', async () => {
    const { a, peers } = await pairAndStranger(cleanup);
    const others = new Map([...peers, [9, await freeAddress()]]);
    const nine = await Peer.start(cleanup, 9, others);
    await a.connectedTo(9);
    await nine.transport.close();
    await until('node 1 has forgotten it', () => ![...a.transport.peers].includes(9));
    const again = await Peer.start(cleanup, 9, others);
    await a.connectedTo(9);
    a.gate.unwelcome.set(9, 'removed');
    a.transport.recheck();
    a.transport.setPeers(listed(peers));
    expect([...a.transport.peers]).toEqual([2, 3]);
    await until('it got the reason', () => again.count('refused by 1: removed') > 0);
    await until('it got the reason again', () => again.count('refused by 1: removed') > 1);
    expect([...a.transport.peers]).toEqual([2, 3]);
  });
});

describe('a connection that misbehaves', () => {
  const tooLong = frameOf('requests', 'x');
  tooLong.writeUInt32BE(2 ** 31, 12);
  const damaged = frameOf('requests', 'abcdef');
  damaged.writeUInt8(0x21, damaged.length - 1);

  it.each([
    ['of another cluster', [helloFrame(3, 1, 'cluster-b')]],
    ['of a node outside the cluster', [helloFrame(9, 1)]],
    ['that claims to be this node', [helloFrame(1, 1)]],
    ['that wants to reach another node', [helloFrame(3, 2)]],
    ['with a hello of strings', [helloFrame('3', '1')]],
    ['with a hello that is no MessagePack', [frameOf('hello', Buffer.from('c1', 'hex'))]],
    ['with an empty hello', [frameOf('hello', '')]],
    ['with a frame before its hello', [frameOf('requests', 'x')]],
    ['that speaks HTTP', [Buffer.from('GET / HTTP/1.1\r\n\r\n')]],
    ['with a frame that is too long', [helloFrame(3, 1), tooLong]],
    ['with a damaged frame', [helloFrame(3, 1), damaged]],
    ['whose frame the handler refuses', [helloFrame(3, 1), frameOf('requests', Peer.POISON)]],
  ])('is closed, and others are not affected: %s', async (_what, bytes) => {
    const { a, b } = await pairAndStranger(cleanup);
    await expectUnharmed(a, b, 'before');
    const client = new RawClient(cleanup, a.address);
    client.write(...bytes, frameOf('requests', 'too late'));
    await client.closed();
    await expectUnharmed(a, b, 'after');
    expect(a.textsFrom(3)).toEqual([]);
    expect(a.count('lost 3')).toBe(bytes.length === 2 ? 1 : 0);
  });

  it('delivers the frames before the bad one, and none after it', async () => {
    const { a } = await pairAndStranger(cleanup);
    const client = new RawClient(cleanup, a.address);
    const good = frameOf('answers', 'good');
    client.write(Buffer.concat([helloFrame(3, 1), good, damaged, good]));
    await client.closed();
    expect(a.frames).toEqual([{ from: 3, type: 'answers', text: 'good' }]);
  });

  it('may be of a real peer, which then connects again', async () => {
    const { a, b } = await pairAndStranger(cleanup);
    b.send(1, Peer.POISON);
    await until('node 2 came back', () => b.count('connected 1') === 2);
    expect(a.count('lost 2')).toBe(1);
    b.send(1, 'sober');
    await until('node 2 is heard', () => a.textsFrom(2).includes('sober'));
    // Node 1 sends on another connection, which is not affected.
    expect(a.count('disconnected 2')).toBe(0);
  });
});

describe('a lost peer', () => {
  it('is reported once, when its process dies', async () => {
    const { a } = await pairAndStranger(cleanup);
    const client = new RawClient(cleanup, a.address);
    client.write(helloFrame(3, 1), frameOf('status', 'here'));
    await until('it is heard', () => a.textsFrom(3).length === 1);
    expect(a.count('lost 3')).toBe(0);
    client.socket.resetAndDestroy();
    await until('it is lost', () => a.count('lost 3') > 0);
    await expectQuiet(a, 'lost 3');
  });

  it('is not reported when a newer connection of the same peer replaces the old one', async () => {
    const { a } = await pairAndStranger(cleanup);
    const older = new RawClient(cleanup, a.address);
    older.write(helloFrame(3, 1), frameOf('status', 'older'));
    await until('the older is heard', () => a.textsFrom(3).length === 1);
    const newer = new RawClient(cleanup, a.address);
    newer.write(helloFrame(3, 1), frameOf('status', 'newer'));
    await older.closed();
    await until('the newer is heard', () => a.textsFrom(3).length === 2);
    expect(a.textsFrom(3)).toEqual(['older', 'newer']);
    expect(a.count('lost 3')).toBe(0);
    newer.socket.destroy();
    await until('it is lost', () => a.count('lost 3') > 0);
    await expectQuiet(a, 'lost 3');
  });

  it('is not reported when a connection without a hello ends', async () => {
    const { a, b } = await pairAndStranger(cleanup);
    const client = new RawClient(cleanup, a.address);
    client.write(helloFrame(3, 1).subarray(0, -1));
    client.socket.end();
    await client.closed();
    await expectUnharmed(a, b, 'after');
    expect(a.count('lost 3')).toBe(0);
  });
});

/** Expects that `event` was seen once, also after a round trip through the event loop and loopback. */
async function expectQuiet(peer: Peer, event: string): Promise<void> {
  const probe = new RawClient(cleanup, peer.address);
  probe.write(Buffer.from('not a frame of this cluster'));
  await probe.closed();
  expect(peer.count(event)).toBe(1);
}

describe('a peer that accepts and never reads', () => {
  it('costs a bounded amount of memory: beyond it frames are dropped, until the peer reads again', async () => {
    const deaf = await RawServer.start(cleanup);
    const { a, b } = await pairAndStranger(cleanup, deaf.address);
    await a.connectedTo(3);
    const payload = Buffer.alloc(1 << 20);
    let sent = 0;
    while (sent < 300 && a.transport.send(3, 'peerMessages', payload)) sent += 1;
    // 64 MiB, the frame that exceeded them, and the buffers of the operating system.
    expect(sent).toBeGreaterThanOrEqual(64);
    expect(sent).toBeLessThan(80);
    expect(a.transport.send(3, 'peerMessages', payload)).toBe(false);
    expect(a.transport.isConnected(3)).toBe(true);
    await expectUnharmed(a, b, 'meanwhile');

    for (const socket of deaf.sockets) socket.resume();
    await until('there is room again', () => a.transport.send(3, 'requests', payload));
  });
});

describe('a peer that has not dialled back yet', () => {
  it('does not count as one that can answer', async () => {
    const { a } = await pairAndStranger(cleanup, (await RawServer.start(cleanup)).address);
    await Promise.all([a.connectedTo(3), a.connectedTo(2)]);
    expect(a.transport.isConnected(3)).toBe(true);
    expect(a.transport.isConnectedBothWays(3)).toBe(false);
    await until('node 2 has dialled back', () => a.transport.isConnectedBothWays(2));
  });
});

describe('dialling', () => {
  it('slows down for a peer that accepts and disconnects, as for one that is down', async () => {
    const rude = await RawServer.start(cleanup, (socket) => socket.destroy());
    // Jitter draws the shortest waits: 25, 50, 100, 200 and 400 ms.
    const startedMillis = performance.now();
    await pairAndStranger(cleanup, rude.address);
    await until('it was dialled six times by each of two', () => rude.sockets.length >= 12);
    expect(performance.now() - startedMillis).toBeGreaterThan(600);
  });
});

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
}

describe('close()', () => {
  it('leaves no socket, listener or timer behind, and reports no events', async () => {
    const before = openSockets();
    const local = new Cleanup();
    const peers = new Map([
      [1, await freeAddress()],
      [2, await freeAddress()],
      [3, await freeAddress()],
    ]);
    const a = await Peer.start(local, 1, peers);
    const b = await Peer.start(local, 2, peers);
    const silent = new RawClient(local, a.address);
    await Promise.all([a.connectedTo(2), b.connectedTo(1)]);
    await until('the silent one is connected', () => !silent.socket.connecting);
    const events = a.events.length;
    await Promise.all([a.transport.close(), b.transport.close()]);
    await silent.closed();
    await until('all sockets are gone', () => openSockets() <= before);
    expect(
      a.events.slice(events).filter((event) => event !== 'disconnected 2' && event !== 'lost 2'),
    ).toEqual([]);
    expect(a.transport.isConnected(2)).toBe(false);
    expect(a.send(2, 'x')).toBe(false);
    await local.run();
  });

  it('stops dialling', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const peers = new Map([
      [1, await freeAddress()],
      [2, await freeAddress()],
    ]);
    const a = await Peer.start(cleanup, 1, peers);
    await until('it waits to dial again', () => vi.getTimerCount() === 1);
    await a.transport.close();
    await until('no timer is left', () => vi.getTimerCount() === 0);
    vi.advanceTimersByTime(60_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('may be called twice, and before start', async () => {
    const peer = new Peer(1, new Map([[1, await freeAddress()]]));
    await peer.transport.close();
    await peer.transport.close();
    const started = await Peer.start(cleanup, 1, new Map([[1, await freeAddress()]]));
    await started.transport.close();
    await started.transport.close();
    expect(started.transport).toBeInstanceOf(TcpTransport);
  });
});
