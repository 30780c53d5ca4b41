/**
 * The header in which a gateway names the user (requirement 000-19): whose budget is used, and which requests are
 * refused.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { USER } from '../../src/api/descriptors.ts';
import { questionOf } from '../../src/api/question.ts';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import { until } from '../transport/wait.ts';
import { Listener } from './fixtures.ts';
import { RawClient } from './raw-client.ts';

const HEADER = 'x-user-id';

let listener: Listener;
let client: RawClient;

beforeEach(async () => {
  listener = new Listener(HTTP_LIMITS, { rateLimitHeaders: [], userHeader: HEADER });
  client = new RawClient(await listener.listen());
});

afterEach(async () => {
  client.socket.destroy();
  await listener.app.close();
});

interface Sent {
  readonly status: number;
  readonly error: unknown;
  /** The answers of a batch. */
  readonly answers: unknown;
}

/** Sends `body` with these header lines, byte by byte; undefined: a request without a body. */
async function send(lines: readonly string[], body?: unknown, path = '/v1/allow'): Promise<Sent> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const ofBody =
    text === undefined
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(text)}`];
  const head = [`POST ${path} HTTP/1.1`, 'host: a', 'connection: close', ...ofBody, ...lines, '', text ?? ''];
  client.socket.write(head.join('\r\n'));
  await until('the connection is closed', () => client.isClosed);
  const answer: unknown = JSON.parse(client.received.slice(client.received.indexOf('\r\n\r\n')));
  const { error, answers } = answer as { readonly error?: unknown; readonly answers?: unknown };
  return { status: Number(client.statuses()[0]), error, answers };
}

function askedUsers(): readonly unknown[] {
  return listener.asked.map(({ descriptors }) => descriptors.get(USER));
}

describe('the user of a request', () => {
  it.each<[string, readonly string[], unknown, string]>([
    ['is named by the header alone', ['x-user-id: ada'], {}, 'ada'],
    ['is named by the header of a request without a body', ['x-user-id: ada'], undefined, 'ada'],
    ['may be named by the header in any letters', ['X-USER-id: Ada'], {}, 'Ada'],
    ['is named by the header if the body contains null', ['x-user-id: ada'], { userId: null }, 'ada'],
    ['may be named by both, if they are equal', ['x-user-id: ada'], { userId: 'ada' }, 'ada'],
    ['is named by the header beside descriptors', ['x-user-id: ada'], { descriptors: { ip: 'a' } }, 'ada'],
    ['may be named by the descriptor too', ['x-user-id: ada'], { descriptors: { user: 'ada' } }, 'ada'],
    ['is named by the body if there is no header', [], { userId: 'ada' }, 'ada'],
    ['may contain letters outside ASCII', ['x-user-id: 日 ü'], { userId: '日 ü' }, '日 ü'],
    ['may have 256 bytes', [`x-user-id: ${'ü'.repeat(128)}`], {}, 'ü'.repeat(128)],
  ])('%s', async (_what, lines, body, userId) => {
    expect((await send(lines, body)).status).toBe(200);
    expect(askedUsers()).toEqual([userId]);
  });

  it('does not change the other fields of the body', async () => {
    await send(['x-user-id: ada'], { cost: 2, rule: 'burst', requestId: 'r1', timestampMillis: 5 });
    const request = { userId: 'ada', cost: 2, rule: 'burst', requestId: 'r1', timestampMillis: 5 };
    expect(listener.asked).toEqual([questionOf(request)]);
  });

  it('is refused if header and body differ, naming both', async () => {
    expect(await send(['x-user-id: ada'], { userId: 'bob' })).toEqual({
      status: 400,
      error: {
        type: 'invalid_request',
        field: 'userId',
        message: "userId 'bob' of the body and 'ada' of the header x-user-id must be the same",
      },
    });
    expect(listener.asked).toEqual([]);
    expect(listener.observed.map(({ status }) => status)).toEqual([400]);
  });

  it.each<[string, readonly string[], unknown, string, string]>([
    ['the header appears twice', ['x-user-id: ada', 'X-User-Id: bob'], {}, HEADER, 'once at most'],
    [
      'the header appears twice with the same value',
      ['x-user-id: ada', 'x-user-id: ada'],
      {},
      HEADER,
      'once at most',
    ],
    ['the header is empty', ['x-user-id:'], { userId: 'ada' }, HEADER, 'text of 1 to 256 bytes'],
    ['the header is too long', [`x-user-id: ${'ü'.repeat(129)}`], {}, HEADER, 'text of 1 to 256 bytes'],
    ['the header begins with a byte order mark', ['x-user-id: \ufeffada'], {}, HEADER, '1 to 256 bytes'],
    ['the user of the body is empty', ['x-user-id: ada'], { userId: '' }, 'userId', '1 to 256 bytes'],
    ['the user of the body is no text', ['x-user-id: 7'], { userId: 7 }, 'userId', '1 to 256 bytes'],
    ['neither header nor body names a user', [], {}, 'userId', 'needs userId or descriptors'],
    ['there is neither a header nor a body', [], undefined, 'body', 'at least userId'],
  ])('is refused if %s', async (_what, lines, body, field, bound) => {
    const { status, error } = await send(lines, body);
    expect(status).toBe(400);
    expect(error).toMatchObject({ field, message: expect.stringContaining(bound) });
    expect(listener.asked).toEqual([]);
  });

  it('is refused if the header is not UTF-8', async () => {
    const head = Buffer.from('POST /v1/allow HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-user-id: ');
    client.socket.write(Buffer.concat([head, Buffer.from([0xe6, 0x97]), Buffer.from('\r\n\r\n')]));
    await until('the connection is closed', () => client.isClosed);
    expect(client.statuses()).toEqual(['400']);
    expect(client.received).toContain('x-user-id must be UTF-8');
    expect(listener.asked).toEqual([]);
  });
});

describe('the users of a batch', () => {
  const BATCH = '/v1/allow/batch';

  it('are the user in the header', async () => {
    const requests = [{}, { userId: 'ada', cost: 2 }];
    expect((await send(['x-user-id: ada'], { requests }, BATCH)).status).toBe(200);
    expect(askedUsers()).toEqual(['ada', 'ada']);
  });

  it('are refused if they differ from the header, and the others are decided', async () => {
    const requests = [{ userId: 'ada' }, { userId: 'bob' }];
    const { status, answers } = await send(['x-user-id: ada'], { requests }, BATCH);
    expect(status).toBe(200);
    expect(answers).toMatchObject([
      { status: 200 },
      {
        status: 400,
        error: { field: 'userId', message: expect.stringContaining('the header x-user-id') },
      },
    ]);
    expect(askedUsers()).toEqual(['ada']);
  });
});

it('are never named by a header if the configuration names none', async () => {
  const plain = new Listener();
  try {
    const ask = async (payload: object): Promise<number> =>
      (await plain.app.inject({ method: 'POST', url: '/v1/allow', headers: { [HEADER]: 'ada' }, payload }))
        .statusCode;
    expect(await ask({ userId: 'bob' })).toBe(200);
    expect(await ask({})).toBe(400);
    expect(plain.asked).toEqual([questionOf({ userId: 'bob' })]);
  } finally {
    await plain.app.close();
  }
});
