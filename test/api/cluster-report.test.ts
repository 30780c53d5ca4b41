/** The check of a cluster report: all known fields must have the right types, and unknown fields are allowed. */
import { describe, expect, it } from 'vitest';
import { isClusterReport } from '../../src/api/cluster-report.ts';
import { REPORT } from '../http/fixtures.ts';

/** All copies of `value` with one field replaced, at any depth. */
function* damaged(value: unknown, by: unknown): Generator<[path: string, value: unknown]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, field] of Object.entries(value)) {
    const replace = (other: unknown): unknown =>
      Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other };
    yield [name, replace(by)];
    for (const [path, other] of damaged(field, by)) yield [`${name}.${path}`, replace(other)];
  }
}

describe('a report of a cluster', () => {
  it('must have all its fields, and may have more', () => {
    expect(isClusterReport(REPORT)).toBe(true);
    expect(isClusterReport({ ...REPORT, rules: null, more: 1 })).toBe(true);
  });

  it.each([...damaged(REPORT, { unexpected: true })])(
    'is refused with another type at %s',
    (_path, value) => {
      expect(isClusterReport(value)).toBe(false);
    },
  );

  it.each([undefined, null, 'ready', [], {}, { status: 'starting', loaded: 1, of: 17 }])(
    'is not %j',
    (value) => {
      expect(isClusterReport(value)).toBe(false);
    },
  );
});
