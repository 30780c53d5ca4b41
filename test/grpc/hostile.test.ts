/**
 * Hostile gRPC clients: they leave requests incomplete, send little that expands to much, or do not leave when they
 * are asked to.
 */
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { constants } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import type { GrpcLimits } from '../../src/grpc/grpc-listener-init.ts';
import { HEALTH_CHECK, HEALTH_WATCH } from '../../src/grpc/health.ts';
import { messageType } from '../../src/grpc/protos.ts';
import { reflectionPath } from '../../src/grpc/reflection.ts';
import { eventually } from '../cluster/harness.ts';
import { ASKED, GRANTED, PlayedGrpc } from './fixtures.ts';
import { framed, PREFACE, type RawCall, RawCalls } from './raw-calls.ts';

const NOTHING = Buffer.alloc(0);
const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest').encode(ASKED);
/** The time in which a refused client must end its request. */
const RESET_AFTER_MILLIS = 1_000;
const OK = { 'grpc-status': String(status.OK) };

let played: PlayedGrpc;
const closers: (() => void)[] = [];

async function open(limits: Partial<GrpcLimits> = {}): Promise<void> {
  played = await PlayedGrpc.open(limits);
}

function calls(from?: string): RawCalls {
  const made = new RawCalls(played.listener.port, from);
  closers.push(() => made.close());
  return made;
}

afterEach(async () => {
  for (const close of closers.splice(0)) close();
  await played.close();
});

async function codeOf(call: RawCall): Promise<status> {
  return Number((await call.answer)['grpc-status']);
}

function as(role: string): { readonly authorization: string } {
  return { authorization: `Bearer ${role}-token` };
}

/** The result of a call that arrived in time. On a busy machine its message may arrive long after its headers. */
async function inTime(begin: () => RawCall): Promise<status> {
  return eventually('a call in time', async () => {
    const code = await codeOf(begin());
    return code === status.DEADLINE_EXCEEDED ? undefined : code;
  });
}

async function noConnection(): Promise<boolean> {
  return eventually('no connection', async () =>
    (await played.listener.connectionCount()) === 0 ? true : undefined,
  );
}

describe('a compressed request', () => {
  const COMPRESSED = { 'grpc-encoding': 'gzip' };

  it('is refused, and not inflated', async () => {
    await open();
    for (const path of [undefined, HEALTH_CHECK, reflectionPath('v1')]) {
      const call = calls().begin({ ...COMPRESSED, ...(path !== undefined && { ':path': path }) });
      // Each of them would be inflated separately.
      call.stream.write(Buffer.concat(Array.from({ length: 3_000 }, () => framed(NOTHING, true))));
      expect(await call.answer).toMatchObject({
        'grpc-status': String(status.UNIMPLEMENTED),
        'grpc-accept-encoding': 'identity',
      });
    }
    const whole = calls().begin(COMPRESSED);
    whole.stream.end(framed(gzipSync(REQUEST), true));
    expect(await codeOf(whole)).toBe(status.UNIMPLEMENTED);
    expect(played.asked).toEqual([]);
  });

  it('is not offered in the supported encodings', async () => {
    await open();
    const plain = calls().ask(REQUEST, { 'grpc-encoding': 'identity' });
    expect(await plain.answer).toMatchObject({ ...OK, 'grpc-accept-encoding': 'identity' });
  });
});

describe('a call that is never finished', () => {
  it('counts for its client, which may have only a fraction of the unfinished calls', async () => {
    await open({ unfinishedMax: 3, unfinishedPerClientMax: 2 });
    played.access.close();
    const greedy = calls();
    for (let i = 0; i < 2; i += 1) greedy.begin(as('decide'));
    expect(await codeOf(greedy.begin(as('decide')))).toBe(status.UNAVAILABLE);
    expect(await codeOf(calls().ask(REQUEST, as('admin')))).toBe(status.OK);
    greedy.close();
    const code = await eventually('its places', async () => {
      const answered = await codeOf(calls().ask(REQUEST, as('decide')));
      return answered === status.UNAVAILABLE ? undefined : answered;
    });
    expect(code).toBe(status.OK);
  });

  it('ends when it is refused, so that the connection has room for another', async () => {
    await open({ callsPerConnectionMax: 1 });
    played.access.close();
    const raw = calls();
    for (let i = 0; i < 5; i += 1) {
      const call = raw.begin();
      expect(await codeOf(call)).toBe(status.UNAUTHENTICATED);
      expect(call.stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
    }
    expect(await codeOf(raw.ask(REQUEST, as('decide')))).toBe(status.OK);
  });

  it('is refused without an immediate reset, which some clients see first', async () => {
    await open();
    played.access.close();
    const raw = calls();
    const call = await eventually('a call of less than a second', async () => {
      const begunMillis = performance.now();
      const refused = raw.begin();
      await once(refused.stream, 'response');
      // Everything that was sent with the answer has arrived before this.
      expect(await codeOf(raw.ask(REQUEST, as('decide')))).toBe(status.OK);
      const { closed } = refused.stream;
      // If the machine stalled this long, the reset is due by now.
      if (performance.now() - begunMillis >= RESET_AFTER_MILLIS) return undefined;
      expect(closed).toBe(false);
      return refused;
    });
    expect(await codeOf(call)).toBe(status.UNAUTHENTICATED);
    expect(call.stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  it('ends after a while, with any answer', async () => {
    await open({ requestMillis: 100 });
    const raw = calls();
    const silent = raw.begin();
    const reflecting = raw.begin({ ':path': reflectionPath('v1') });
    reflecting.stream.write(framed(NOTHING));
    const tooLong = await inTime(() => {
      const call = raw.begin();
      call.stream.write(framed(Buffer.alloc(40_000)));
      return call;
    });
    expect(await codeOf(silent)).toBe(status.DEADLINE_EXCEEDED);
    expect(tooLong).toBe(status.RESOURCE_EXHAUSTED);
    await reflecting.answer;
    expect(await inTime(() => raw.ask(REQUEST))).toBe(status.OK);
  });
});

describe('watches of health', () => {
  it('are bounded for each address', async () => {
    await open({ watchersMax: 3, watchersPerClientMax: 2 });
    const watch = { ':path': HEALTH_WATCH };
    const greedy = calls();
    for (let i = 0; i < 2; i += 1) greedy.ask(NOTHING, watch);
    expect(await codeOf(greedy.ask(NOTHING, watch))).toBe(status.RESOURCE_EXHAUSTED);
    const other = calls('127.0.0.2').ask(NOTHING, watch);
    await new Promise((resolve) => {
      other.stream.once('data', resolve);
    });
    greedy.close();
    await eventually('its places', async () => {
      const next = calls().ask(NOTHING, watch);
      const first = new Promise((resolve) => {
        next.stream.once('data', () => resolve(true));
      });
      return (await Promise.race([first, next.answer])) === true ? true : undefined;
    });
    expect(other.isOver).toBe(false);
  });
});

describe('a client that was asked to go elsewhere', () => {
  it('gets the answers of open calls, and of those on their way', async () => {
    await open();
    played.answer = undefined;
    const raw = calls();
    const first = raw.ask(REQUEST);
    await eventually('a request', () => played.open[0]);
    played.wantsNoClients = true;
    const late = [raw.ask(REQUEST), raw.ask(REQUEST)];
    await new Promise((resolve) => {
      raw.session.once('goaway', resolve);
    });
    await eventually('the call that was on its way', () => played.open[2]);
    for (const done of played.open) done(GRANTED);
    for (const call of [first, ...late]) expect(await codeOf(call)).toBe(status.OK);
    expect(await noConnection()).toBe(true);
  });

  it('is finally disconnected, and a client that came after it is not', async () => {
    await open({ leaveMillis: 600 });
    const leaving = calls();
    const watching = leaving.ask(NOTHING, { ':path': HEALTH_WATCH });
    played.wantsNoClients = true;
    await leaving.ask(REQUEST).answer;
    played.wantsNoClients = false;
    const other = calls();
    const staying = other.ask(NOTHING, { ':path': HEALTH_WATCH });
    await watching.answer;
    expect(await codeOf(other.ask(REQUEST))).toBe(status.OK);
    expect(staying.isOver).toBe(false);
  });
});

/** Reads everything, and sends nothing after the HTTP/2 preface. */
async function halfOpen(): Promise<void> {
  const socket = connectTcp({ port: played.listener.port, host: '127.0.0.1', allowHalfOpen: true });
  closers.push(() => socket.destroy());
  socket.on('error', () => {});
  socket.resume();
  socket.write(PREFACE);
  // The socket may be closed before the connections are counted.
  await eventually('a connection', () => (played.accepted === 1 ? true : undefined));
}

describe('a client that does not hang up', () => {
  it('is disconnected when it was idle for too long', async () => {
    await open({ idleMillis: 50 });
    await halfOpen();
    expect(await noConnection()).toBe(true);
  });

  it('does not delay the close of the listener', async () => {
    await open();
    await halfOpen();
    await expect(played.listener.close()).resolves.toBeUndefined();
  });
});
