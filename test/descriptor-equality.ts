/** Descriptors are equal if they say the same, however they are kept. To the tests' own comparison a class and a `Map` never are. */
import { expect } from 'vitest';
import { UserDescriptor } from '../src/api/descriptors.ts';

function isDescriptors(value: unknown): value is UserDescriptor | Map<unknown, unknown> {
  return value instanceof UserDescriptor || value instanceof Map;
}

expect.addEqualityTesters([
  function areDescriptorsEqual(a: unknown, b: unknown): boolean | undefined {
    if (!isDescriptors(a) || !isDescriptors(b) || a.constructor === b.constructor) return undefined;
    return this.equals(new Map(a), new Map(b));
  },
]);
