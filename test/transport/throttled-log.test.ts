/** Tests that unknown clients and broken peers cannot fill the log. */
import { describe, expect, it, vi } from 'vitest';
import { type Logger, pino } from 'pino';
import { ThrottledLog } from '../../src/transport/throttled-log.ts';
import { TcpTransport } from '../../src/transport/tcp-transport.ts';
import {
  cleanupAfterEach,
  CLUSTER,
  freeAddress,
  frameOf,
  helloFrame,
  RawClient,
  TestGate,
  withoutSilence,
} from './peers.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly times?: number;
  readonly reason?: string;
}

const WARN = 40;
const cleanup = cleanupAfterEach();

function memory(): { lines: Line[]; logger: Logger } {
  const lines: Line[] = [];
  const logger = pino({ level: 'warn' }, { write: (text: string) => lines.push(JSON.parse(text) as Line) });
  return { lines, logger };
}

async function listening(): Promise<{ lines: Line[]; address: { host: string; port: number } }> {
  const { lines, logger } = memory();
  const address = await freeAddress();
  const transport = new TcpTransport({
    nodeId: 1,
    clusterId: CLUSTER,
    listen: address,
    peers: new Map(),
    gate: new TestGate(1, address),
    logger,
    random: () => 0,
    atTurnEnd: setImmediate,
  });
  cleanup.add(() => transport.close());
  await transport.start({
    onFrame: () => undefined,
    onIntroduced: () => undefined,
    onUnwelcome: () => undefined,
    onRefused: () => undefined,
    onPeerLost: () => undefined,
    onPeerConnected: () => undefined,
    onPeerDisconnected: () => undefined,
  });
  return { lines, address };
}

describe('a warning that may repeat', () => {
  it('is logged at once, then summed up every ten seconds, and at once again after a pause', () => {
    vi.useFakeTimers();
    const { lines, logger } = memory();
    const log = new ThrottledLog<'a' | 'b'>(logger);
    const reported = (): [string, number | undefined][] => lines.map(({ msg, times }) => [msg, times]);
    log.warn('a', { i: 0 }, 'bad');
    log.warn('b', {}, 'other');
    for (let i = 1; i <= 1_000; i += 1) {
      log.warn('a', { i }, 'bad');
      vi.advanceTimersByTime(16);
    }
    expect(reported()).toEqual([
      ['bad', undefined],
      ['other', undefined],
      ['bad (the last of several such lines)', 625],
    ]);
    expect(lines[2]).toMatchObject({ level: WARN, i: 625 });
    vi.advanceTimersByTime(10_000);
    expect(reported().slice(3)).toEqual([['bad (the last of several such lines)', 375]]);
    vi.advanceTimersByTime(20_000);
    expect(vi.getTimerCount()).toBe(0);
    log.warn('a', {}, 'bad');
    expect(reported().slice(4)).toEqual([['bad', undefined]]);
    log.warn('a', {}, 'bad');
    log.close();
    expect(reported().slice(5)).toEqual([['bad (the last of several such lines)', 1]]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a log', () => {
  it('is not filled by bad frames of an unknown client', async () => {
    // The number is logged after ten seconds, and a busy machine may need that long.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    // It would also log a silent connection, if this process stalled for as long.
    withoutSilence(cleanup);
    const { lines, address } = await listening();
    const strangers = [
      [Buffer.from('GET /v1/cluster HTTP/1.1\r\n\r\n')],
      [helloFrame(3, 1, 'cluster-b')],
      [helloFrame(3, 2)],
      [frameOf('requests', 'x')],
    ];
    for (let i = 0; i < 100; i += 1) {
      const client = new RawClient(cleanup, address);
      client.write(...(strangers[i % strangers.length] ?? []));
      await client.closed();
    }
    // One line of each kind: for malformed frames, and for refused nodes.
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatchObject({
      level: WARN,
      msg: 'refused a connection on the peer port',
      reason: 'not a Quorate frame (magic 0x4745)',
    });
    expect(lines[1]).toMatchObject({ level: WARN, refused: 'wrongTarget' });
  });
});
