/** The gRPC listener: the roles of methods, the requests that are refused unread, and how it closes. */
import { connect } from 'node:net';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import type { GrpcLimits } from '../../src/grpc/grpc-listener-init.ts';
import { HEALTH_CHECK } from '../../src/grpc/health.ts';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/should-rate-limit.ts';
import { eventually } from '../cluster/harness.ts';
import { asIs, type EnvoyClient } from './envoy-client.ts';
import { ASKED, GRANTED, PlayedGrpc } from './fixtures.ts';

let played: PlayedGrpc;
let client: EnvoyClient;

async function open(limits: Partial<GrpcLimits> = {}): Promise<void> {
  played = await PlayedGrpc.open(limits);
  client = played.client();
}

afterEach(async () => {
  await played.close();
});

const NOTHING = Buffer.alloc(0);

describe('a caller', () => {
  it('needs no token while the cluster is open', async () => {
    await open();
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
    expect(played.shedding.asked).toEqual(['127.0.0.1']);
  });

  it('needs a token of the role once the cluster is closed', async () => {
    await open();
    played.access.close();
    for (const role of ['decide', 'admin'])
      expect(await client.ask(ASKED, { token: `${role}-token` })).toMatchObject({ overallCode: 'OK' });
    expect(played.shedding.asked).toEqual(['iddecide', 'idadmin']);
    expect(await client.ask(ASKED, { token: 'read-token' })).toMatchObject({
      code: status.PERMISSION_DENIED,
    });
    expect(await client.ask(ASKED)).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(played.access.failures).toBe(0);
    expect(await client.ask(ASKED, { token: 'wrong' })).toMatchObject({ code: status.UNAUTHENTICATED });
    expect(played.access.failures).toBe(1);
    expect(played.asked).toHaveLength(2);
  });

  it('is refused while this node does not know the tokens', async () => {
    await open();
    played.access.now = 'unknown';
    expect(await client.ask(ASKED, { token: 'decide-token' })).toMatchObject({ code: status.UNAVAILABLE });
    expect(await client.bytes(HEALTH_CHECK, NOTHING)).not.toHaveProperty('code');
  });

  it('is disconnected after ten wrong tokens on one connection', async () => {
    await open();
    played.access.close();
    for (let i = 0; i < 10; i += 1) await client.ask(ASKED, { token: 'wrong' });
    await eventually('the end of the connection', async () =>
      (await played.listener.connectionCount()) === 0 ? true : undefined,
    );
    expect(await client.ask(ASKED, { token: 'decide-token' })).toMatchObject({ overallCode: 'OK' });
  });

  it('can call no other methods', async () => {
    await open();
    expect(await client.bytes('/envoy.service.ratelimit.v3.RateLimitService/Other', NOTHING)).toMatchObject({
      code: status.UNIMPLEMENTED,
    });
  });
});

describe('a call beyond the bounds', () => {
  it('is refused unread if the node sheds load', async () => {
    await open();
    played.shedding.refused = true;
    // If it were read, it would be refused as malformed.
    const answered = await client.bytes(SHOULD_RATE_LIMIT, Buffer.from([0xff]));
    expect(answered).toMatchObject({ code: status.UNAVAILABLE });
    expect(answered.details).toContain('overloaded');
    expect(played.refusedUnread).toBe(1);
    expect(played.listener.answers).toMatchObject({ unavailable: 1, invalid: 0 });
    expect(await client.bytes(HEALTH_CHECK, NOTHING)).not.toHaveProperty('code');
  });

  it('is counted as open until it is answered', async () => {
    await open();
    played.answer = undefined;
    const answered = client.ask(ASKED);
    await eventually('a request', () => played.open[0]);
    const fraction = played.shedding.fractions.get('127.0.0.1');
    expect(fraction?.open).toBe(1);
    played.open[0]!(GRANTED);
    expect(fraction?.open).toBe(0);
    expect(await answered).toMatchObject({ overallCode: 'OK' });
  });

  it('is closed with its connection if there are too many', async () => {
    await open({ connectionsMax: 1 });
    await client.ask(ASKED);
    expect(await played.client().ask(ASKED)).toMatchObject({ code: status.UNAVAILABLE });
    expect(played.accepted).toBeGreaterThanOrEqual(2);
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
  });

  it('is refused if its request does not end in time', async () => {
    await open({ requestMillis: 100 });
    const ended = new Promise((resolve) => {
      // The call has no complete message, and never ends.
      client.raw.makeClientStreamRequest(SHOULD_RATE_LIMIT, asIs, asIs, (error) => resolve(error?.code));
    });
    expect(await ended).toBe(status.DEADLINE_EXCEEDED);
    expect(played.asked).toEqual([]);
  });

  it('is refused if too many requests are incomplete', async () => {
    await open({ unfinishedMax: 1 });
    const first = client.raw.makeClientStreamRequest(SHOULD_RATE_LIMIT, asIs, asIs, () => {});
    await eventually('a refusal', async () =>
      (await client.ask(ASKED)).code === status.UNAVAILABLE ? true : undefined,
    );
    first.cancel();
    expect(await eventually('a grant', async () => (await client.ask(ASKED)).overallCode)).toBe('OK');
  });
});

describe('a client of another protocol', () => {
  it('is disconnected, and no other client notices', async () => {
    await open();
    const socket = connect(played.listener.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.end('POST /json HTTP/1.1\r\nhost: a\r\n\r\n');
    socket.resume();
    await new Promise((resolve) => {
      socket.once('close', resolve);
    });
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
  });
});

describe('a listener that closes', () => {
  it('answers open calls, accepts no new ones, and is then closed', async () => {
    await open();
    played.answer = undefined;
    const answered = client.ask(ASKED);
    await eventually('a request', () => played.open[0]);
    const closed = played.listener.close();
    expect(await played.client().ask(ASKED, { deadlineMillis: 2_000 })).not.toHaveProperty('overallCode');
    played.open[0]!(GRANTED);
    expect(await answered).toMatchObject({ overallCode: 'OK' });
    await closed;
    await eventually('no connection', async () =>
      (await played.listener.connectionCount()) === 0 ? true : undefined,
    );
  });

  it('does not wait for a client without open calls, or with watches only', async () => {
    await open();
    await client.ask(ASKED);
    await played.listener.close();
    expect(await client.ask(ASKED, { deadlineMillis: 2_000 })).toMatchObject({
      code: expect.any(Number) as number,
    });
  });

  it('asks clients to go elsewhere while the node is drained, and still answers them', async () => {
    await open();
    played.wantsNoClients = true;
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
    await eventually('the end of the connection', async () =>
      (await played.listener.connectionCount()) === 0 ? true : undefined,
    );
    expect(await client.ask(ASKED)).toMatchObject({ overallCode: 'OK' });
  });
});
