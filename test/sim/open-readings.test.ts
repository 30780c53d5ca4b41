/** Which of several requests with one customer a read was for. */
import { expect, it } from 'vitest';
import { NO_RECORD } from '../../src/api/customer.ts';
import type { Asking } from './described-rounds.ts';
import { OpenReadings } from './open-readings.ts';

function askingOf(key: string): Asking {
  const customer = { key, known: () => NO_RECORD };
  return { customer, busy: 0, confirmed: undefined } as unknown as Asking;
}

it('a read that was heard is for who goes on with it, and the other one still waits', () => {
  const readings = new OpenReadings();
  const [heard, other, stranger] = [askingOf('a'), askingOf('a'), askingOf('b')];
  const [own] = [heard, stranger, other].map((asking) => readings.begin(asking));
  readings.end(own!);
  heard.confirmed = NO_RECORD;
  const known = [heard, stranger, other];
  const isTold = ({ busy, confirmed }: Asking): boolean => busy === 0 && confirmed === NO_RECORD;
  expect(readings.exchanged(heard, known, (one) => one !== heard && isTold(one))).toBe(other);
  expect([heard, stranger, other].map(({ busy }) => busy)).toEqual([1, 1, 0]);
  expect(heard.confirmed).toBeUndefined();
  expect(other.confirmed).toBe(NO_RECORD);
});

it('and for nobody else where that fits none: all is as it was', () => {
  const readings = new OpenReadings();
  const [heard, other] = [askingOf('a'), askingOf('a')];
  readings.begin(other);
  expect(readings.exchanged(heard, [heard, other], () => true)).toBeUndefined();
  heard.confirmed = NO_RECORD;
  expect(readings.exchanged(heard, [heard, other], () => false)).toBeUndefined();
  expect(readings.exchanged(heard, [heard], () => true)).toBeUndefined();
  expect([heard, other]).toMatchObject([
    { busy: 0, confirmed: NO_RECORD },
    { busy: 1, confirmed: undefined },
  ]);
});
