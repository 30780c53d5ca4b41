/** Tests silent connections: before the hello, between frames, and forever. */
import { describe, expect, it, vi } from 'vitest';
import { clusterTag, FrameDecoder, type FrameType } from '../../src/wire/frame.ts';
import { eventually } from '../cluster/harness.ts';
import {
  cleanupAfterEach,
  CLUSTER,
  expectUnharmed,
  frameOf,
  helloFrame,
  pairAndStranger,
  type Peer,
  RawClient,
  RawServer,
  withoutSilence,
} from './peers.ts';
import { until } from './wait.ts';

const cleanup = cleanupAfterEach();

/** Time passes for faked timers, while nodes 1 and 2 talk twice a second as live nodes do. */
async function pass(millis: number, a: Peer, b: Peer): Promise<void> {
  for (let elapsed = 0; elapsed < millis; elapsed += 500) {
    vi.advanceTimersByTime(Math.min(500, millis - elapsed));
    await expectUnharmed(a, b, `from 2 ${elapsed}`);
    expect(a.send(2, `from 1 ${elapsed}`)).toBe(true);
    await until('node 2 has it', () => b.textsFrom(1).includes(`from 1 ${elapsed}`));
  }
}

describe('a connection without a hello', () => {
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['half a hello', helloFrame(3, 1).subarray(0, 21)],
  ])('is closed after 5 seconds of %s', async (_what, bytes) => {
    // Five real seconds may pass, too, on a busy machine.
    withoutSilence(cleanup);
    const { a, b } = await pairAndStranger(cleanup);
    await Promise.all([a.connectedTo(3), b.connectedTo(3)]);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const client = new RawClient(cleanup, a.address);
    client.write(bytes);
    await until('it was accepted', () => vi.getTimerCount() === 1);
    await pass(4_999, a, b);
    expect(client.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    await client.closed();
    expect(a.count('lost 3')).toBe(0);
  });

  it('stays open after the hello, for as long as it is used', async () => {
    withoutSilence(cleanup);
    const { a, b } = await pairAndStranger(cleanup);
    await Promise.all([a.connectedTo(3), b.connectedTo(3)]);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const client = new RawClient(cleanup, a.address);
    client.write(helloFrame(3, 1));
    for (let beat = 1; beat <= 20; beat += 1) {
      client.write(frameOf('status', 'here'));
      await until('it is heard', () => a.textsFrom(3).length === beat);
      await pass(500, a, b);
    }
    expect(client.isClosed).toBe(false);
    expect(a.count('lost 3')).toBe(0);
  });
});

/** Live nodes send a keep-alive once a second; one that is silent for five is gone. */
const STOOD_STILL_MILLIS = 3_000;

/** Returns the longest time for which this process may have stalled since. */
function watchStandstill(): () => number {
  let longestMillis = 0;
  let lastMillis = performance.now();
  const peek = (): void => {
    const now = performance.now();
    longestMillis = Math.max(longestMillis, now - lastMillis);
    lastMillis = now;
  };
  const timer = setInterval(peek, 50);
  cleanup.add(() => clearInterval(timer));
  return () => {
    peek();
    return longestMillis;
  };
}

describe('a connection that falls silent', () => {
  it('is dialled again, although it was not closed: the host or the network may be gone', async () => {
    await eventually('a run in which the machine did not stall', async () => {
      const stoodStill = watchStandstill();
      const silent = await RawServer.start(cleanup, (socket) => socket.resume());
      const { a, b } = await pairAndStranger(cleanup, silent.address);
      await a.connectedTo(3);
      const client = new RawClient(cleanup, a.address);
      client.write(helloFrame(3, 1), frameOf('status', 'my last words'));
      await until('it is heard', () => a.textsFrom(3).length === 1);
      await until('node 1 counts it as lost', () => a.count('lost 3') === 1);
      await until('it is dialled again', () => a.count('connected 3') === 2);
      await client.closed();
      // While this process stalled, the others were silent, too.
      if (stoodStill() >= STOOD_STILL_MILLIS) return undefined;
      // Nodes 1 and 2 had nothing to send to each other all the time.
      await expectUnharmed(a, b, 'first words');
      return true;
    });
  });
});

describe('a node with nothing to send', () => {
  it('sends a keep-alive once a second, and none soon after another frame', async () => {
    const heard: FrameType[] = [];
    const third = await RawServer.start(cleanup, (socket) => {
      const decoder = new FrameDecoder(clusterTag(CLUSTER));
      socket.on('data', (bytes) => decoder.push(bytes, ({ type }) => heard.push(type)));
      socket.resume();
    });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { a, b } = await pairAndStranger(cleanup, third.address);
    await Promise.all([a.connectedTo(3), b.connectedTo(3)]);
    await b.transport.close();
    await until('both have sent their hello', () => heard.length === 2);
    // The hello was such a frame.
    vi.advanceTimersByTime(1_000);
    vi.advanceTimersByTime(1_000);
    await until('it has sent a keep-alive', () => heard.length === 3);
    a.send(3, 'something else');
    vi.advanceTimersByTime(1_000);
    vi.advanceTimersByTime(999);
    await until('it has sent the other frame', () => heard.length === 4);
    vi.advanceTimersByTime(1);
    await until('it has sent another keep-alive', () => heard.length === 5);
    expect(heard.slice(2)).toEqual(['alive', 'requests', 'alive']);
  });

  it('sends keep-alives that only the transport reads', async () => {
    const { a } = await pairAndStranger(cleanup);
    const client = new RawClient(cleanup, a.address);
    client.write(helloFrame(3, 1), frameOf('alive', ''), frameOf('status', 'and well'));
    await until('it is heard', () => a.textsFrom(3).length > 0);
    expect(a.frames).toEqual([{ from: 3, type: 'status', text: 'and well' }]);
  });
});
