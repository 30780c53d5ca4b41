/** Tests which open requests are due, for any order of their deadlines. */
import { expect, it } from 'vitest';
import { type OpenRequest, OpenRequests } from '../../src/router/open-request.ts';

function openUntil(deadlineMillis: number): OpenRequest & { isSettled: boolean } {
  return { deadlineMillis, isSettled: false } as OpenRequest & { isSettled: boolean };
}

it('returns each request at its deadline, also one with less time than earlier ones', () => {
  const requests = new OpenRequests();
  const [first, short, second, same] = [500, 100, 600, 600].map(openUntil);
  for (const one of [first, short, second, same]) requests.add(one!);
  expect([...requests]).toHaveLength(4);
  expect(requests.takeDue(99)).toEqual([]);
  expect(requests.takeDue(100)).toEqual([short]);
  expect(requests.takeDue(499)).toEqual([]);
  expect(requests.takeDue(500)).toEqual([first]);
  second!.isSettled = true;
  expect(requests.takeDue(600)).toEqual([same]);
  expect([...requests]).toEqual([]);
});
