/** Tests the errors of a client: invalid options and requests, and error codes of nodes. */
import { describe, expect, it } from 'vitest';
import { QuorateClient } from '../../src/client/client.ts';
import type { ClientOptions } from '../../src/client/options.ts';
import { A, grantOf, Played, watched } from './played.ts';

const ADA = { userId: 'ada' };

describe('an error', () => {
  it.each([
    [{ userId: '' }, 'userId'],
    [{ userId: 'x'.repeat(257) }, 'userId'],
    [{ userId: 'ada', cost: 0 }, 'cost'],
    [{ userId: 'ada', cost: 1.5 }, 'cost'],
    [{ userId: 'ada', rule: '' }, 'rule'],
    [{ userId: 'ada', requestId: '' }, 'requestId'],
    [{ userId: 'ada', timestampMillis: -1 }, 'timestampMillis'],
    [{ descriptors: {} }, 'descriptors'],
    [{ descriptors: { a: 1 } }, 'descriptors.a'],
    [{ descriptors: { a: 'b' }, rule: '' }, 'rule'],
    [{ descriptors: { a: 'b' }, userId: 'x'.repeat(257) }, 'userId'],
    [{ descriptors: { a: 'b' }, userId: '' }, 'userId'],
    [{ descriptors: { a: null } }, 'descriptors.a'],
    [{ descriptors: { user: 'b' }, userId: 'ada' }, 'userId'],
    [{ user: 'ada' }, 'userId'],
    [null, 'request'],
  ])('for %j names the field, and nothing is sent', async (request, field) => {
    const played = new Played();
    const asked = [watched(played.client.allow(request as never))];
    if (request !== null) asked.push(watched(played.client.waitForPermit(request as never)));
    await played.settle();
    for (const { error } of asked)
      expect(error).toMatchObject({ code: 'INVALID_REQUEST', field, isDefinite: true });
    expect(played.sent).toEqual([]);
  });

  it('for a request that names nobody says what is missing', async () => {
    const asked = watched(new Played().client.allow({ user: 'ada' } as never));
    await new Played().settle();
    expect(asked.error).toMatchObject({
      message: 'a request needs userId or descriptors, and this one has neither',
    });
  });

  it.each([401, 403, 404, 413, 421])('of status %i is reported at once, and is definite', async (status) => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.respond(status, { allowed: false, error: { type: 'x', message: 'why' } });
    await played.settle();
    expect(asked.error).toMatchObject({ code: 'REFUSED', status, isDefinite: true });
  });

  it('about an id that another request has used names the field that differs', async () => {
    const played = new Played();
    const asked = watched(played.client.allow({ ...ADA, requestId: 'mine' }));
    await played.settle();
    played.last.answer({
      status: 422,
      allowed: false,
      error: { type: 'request_id_reused', field: 'cost', message: 'm' },
    });
    await played.settle();
    expect(asked.error).toMatchObject({ code: 'REQUEST_ID_CONFLICT', field: 'cost', isDefinite: true });
  });

  it('about too many open requests is reported at once', async () => {
    const played = new Played({ openRequestsMax: 2 });
    const asked = [1, 2, 3].map((i) => watched(played.client.allow({ userId: `user-${i}` })));
    await played.settle();
    expect(asked.map(({ error }) => error?.code)).toEqual([undefined, undefined, 'OVERLOADED']);
    played.last.answer(grantOf());
    await played.settle();
    watched(played.client.allow(ADA));
    await played.settle();
    expect(played.last.requests).toHaveLength(1);
  });

  it('ends every waiting request when the client is closed: definite, if it was not sent', async () => {
    const played = new Played({ nodes: [A], batchesPerNodeMax: 1, batchMax: 1 });
    const asked = [1, 2].map((i) => watched(played.client.allow({ userId: `user-${i}` })));
    await played.settle();
    played.client.close();
    const late = watched(played.client.allow(ADA));
    await played.settle();
    expect([...asked, late].map(({ error }) => [error?.code, error?.isDefinite])).toEqual([
      ['CLOSED', false],
      ['CLOSED', true],
      ['CLOSED', true],
    ]);
    const { leadersAsked } = played;
    played.last.fail(true);
    await played.pass(10_000);
    expect([played.sent.length, played.leadersAsked]).toEqual([1, leadersAsked]);
  });
});

describe('an option', () => {
  it.each([
    [{ nodes: [] }, 'nodes'],
    [{ nodes: ['127.0.0.1:8101'] }, 'nodes[0]'],
    [{ nodes: ['http://a/path'] }, 'nodes[0]'],
    [{ nodes: ['http://a:1', 'https://b:1'] }, 'nodes'],
    [{ nodes: [A], deadlineMillis: 0 }, 'deadlineMillis'],
    [{ nodes: [A], requestIdHorizonMillis: 19 }, 'requestIdHorizonMillis'],
    [{ nodes: [A], requestIdHorizonMillis: 5_999 }, 'deadlineMillis'],
    [{ nodes: [A], batchMax: 1_001 }, 'batchMax'],
    [{ nodes: [A], openRequestsMax: 1.5 }, 'openRequestsMax'],
    [{ nodes: [A], token: 'a b' }, 'token'],
    [{ nodes: [A], failMode: 'maybe' }, 'failMode'],
    [{ nodes: [A], failMode: { mode: 'local', limit: 0, windowMillis: 1 } }, 'failMode.limit'],
    [{ nodes: [A], timeout: 5 }, 'timeout'],
  ])('%j is refused with its name', (options, field) => {
    expect(() => new QuorateClient(options as unknown as ClientOptions)).toThrow(
      expect.objectContaining({ field }),
    );
  });
});
