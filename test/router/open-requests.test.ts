/** Tests which open requests are due, in whatever order their deadlines are. */
import { expect, it } from 'vitest';
import { type OpenRequest, OpenRequests } from '../../src/router/open-request.ts';

function openUntil(deadlineMillis: number): OpenRequest & { isSettled: boolean } {
  return { deadlineMillis, isSettled: false } as OpenRequest & { isSettled: boolean };
}

it('takes out each request at its deadline, also one that has less time than those before it', () => {
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
