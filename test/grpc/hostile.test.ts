/** Clients that leave open what others need, say little that becomes much, and do not go when they are told. */
import { constants } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import type { GrpcLimits } from '../../src/grpc/door-init.ts';
import { HEALTH_CHECK } from '../../src/grpc/health.ts';
import { messageType } from '../../src/grpc/message-types.ts';
import { reflectionPath } from '../../src/grpc/reflection.ts';
import { eventually } from '../cluster/harness.ts';
import { ASKED, PlayedGrpc } from './fixtures.ts';
import { framed, type RawCall, RawCalls } from './raw-calls.ts';

const NOTHING = Buffer.alloc(0);
const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest').encode(ASKED);
const OK = { 'grpc-status': String(status.OK) };

let played: PlayedGrpc;
const closers: (() => void)[] = [];

async function open(limits: Partial<GrpcLimits> = {}): Promise<void> {
  played = await PlayedGrpc.open(limits);
}

function calls(from?: string): RawCalls {
  const made = new RawCalls(played.door.port, from);
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

describe('a compressed request', () => {
  const COMPRESSED = { 'grpc-encoding': 'gzip' };

  it('is refused, and nothing of it is inflated', async () => {
    await open();
    for (const path of [undefined, HEALTH_CHECK, reflectionPath('v1')]) {
      const call = calls().begin({ ...COMPRESSED, ...(path !== undefined && { ':path': path }) });
      // Each of them would be inflated by itself.
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

  it('is offered to nobody', async () => {
    await open();
    const plain = calls().ask(REQUEST, { 'grpc-encoding': 'identity' });
    expect(await plain.answer).toMatchObject({ ...OK, 'grpc-accept-encoding': 'identity' });
  });
});

describe('a call that is never finished', () => {
  it('takes no more than its share of the places', async () => {
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

  it('is over when it is refused, and leaves its place on the connection', async () => {
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

  it('is over after a while, whatever was answered', async () => {
    await open({ requestMillis: 100 });
    const raw = calls();
    const silent = raw.begin();
    const tooLong = raw.begin();
    tooLong.stream.write(framed(Buffer.alloc(40_000)));
    const reflecting = raw.begin({ ':path': reflectionPath('v1') });
    reflecting.stream.write(framed(NOTHING));
    expect(await codeOf(silent)).toBe(status.DEADLINE_EXCEEDED);
    expect(await codeOf(tooLong)).toBe(status.RESOURCE_EXHAUSTED);
    await reflecting.answer;
    expect(await codeOf(raw.ask(REQUEST))).toBe(status.OK);
  });
});
