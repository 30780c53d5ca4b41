/** Tests that an event listener that throws changes no decision and does not end the process. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UnavailableError } from '../../src/client/errors.ts';
import type { RequestFacts } from '../../src/client/middleware/facts.ts';
import { limitOf, type RateLimitOptions } from '../../src/client/middleware/limit.ts';
import { eventually } from '../cluster/harness.ts';
import { Answering, DENIAL } from './answering.ts';
import { grantOf, Played, watched } from './played.ts';

const FACTS: RequestFacts = { method: 'GET', path: '/', peerAddress: '1.2.3.4', header: () => undefined };
const warnings: (Error & { readonly detail?: string })[] = [];
const uncaught = vi.fn<(error: unknown) => void>();
const warned = (warning: Error): void => void warnings.push(warning);

beforeEach(() => {
  warnings.length = 0;
  uncaught.mockClear();
  process.on('warning', warned);
  process.on('uncaughtExceptionMonitor', uncaught);
});
afterEach(() => {
  process.off('warning', warned);
  process.off('uncaughtExceptionMonitor', uncaught);
});

function reported(): readonly Error[] {
  return warnings.filter(({ message }) => message.startsWith('the quorate callback onEvent threw'));
}

/** Listeners that fail in different ways. */
const THROWING: readonly [string, () => void][] = [
  [
    'throws',
    () => {
      throw new TypeError('mine');
    },
  ],
  ['rejects', async () => Promise.reject(new TypeError('mine'))],
  [
    'throws a value that cannot become text',
    () => {
      throw Object.create(null) as Error;
    },
  ],
];

async function statusOf(
  answer: Answering['answer'],
  options: Partial<RateLimitOptions<object>>,
): Promise<unknown> {
  const client = new Answering();
  client.answer = answer;
  const verdict = await limitOf({ client, identify: () => 'ada', ...options })({}, FACTS);
  return verdict.passes ? 'passes' : verdict.status;
}

describe.each(THROWING)('a listener that %s', (_, listener) => {
  it('of the client changes no answer, and causes one warning', async () => {
    const played = new Played({ onEvent: listener });
    for (const userId of ['ada', 'bob']) {
      const asked = watched(played.client.allow({ userId }));
      await played.settle();
      played.last.answer(grantOf());
      await played.settle();
      expect(asked.value).toMatchObject({ allowed: true });
    }
    await eventually('a warning', async () => (reported().length > 0 ? true : undefined));
    expect(reported().map(({ name }) => name)).toEqual(['QuorateWarning']);
    expect(uncaught).not.toHaveBeenCalled();
  });

  it('of middleware changes no answer', async () => {
    const options = { onDenied: listener, onError: listener };
    expect(await statusOf(DENIAL, options)).toBe(429);
    expect(await statusOf(DENIAL, { ...options, shadow: true })).toBe('passes');
    expect(await statusOf(new UnavailableError('no_leader'), options)).toBe(503);
    expect(await statusOf(new UnavailableError('no_leader'), { ...options, shadow: true })).toBe('passes');
  });
});

describe('a listener that closes the client', () => {
  it.each(['sent', 'received', 'retry'])('at the event "%s" causes no further requests', async (type) => {
    const played: Played = new Played({
      onEvent: (event) => {
        if (event.type === type) played.client.close();
      },
    });
    const asked = watched(played.client.allow({ userId: 'ada' }));
    await played.settle();
    played.sent.at(-1)?.fail(true);
    await played.pass(10_000);
    expect(asked.error).toMatchObject({ code: 'CLOSED', isDefinite: false });
    expect(played.sent).toHaveLength(1);
  });
});
