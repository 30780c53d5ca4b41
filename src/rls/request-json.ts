/**
 * Parses a `RateLimitRequest` in proto3 JSON: field names in either spelling, integers as numbers or strings, and
 * `null` like an absent field. Unknown fields are refused. Pure.
 */
import { InvalidFieldError, objectAt } from '../api/fields.ts';
import { LISTS_MAX, LIST_ENTRIES_MAX, type ListEntry } from '../api/listed.ts';
import type { LimitOverride, RateLimitRequest, RequestDescriptor } from './request.ts';

const DIGITS = /^\d{1,20}$/;

/** Parses a request. @throws InvalidFieldError naming the field and its bound */
export function requestOfJson(value: unknown): RateLimitRequest {
  const fields = fieldsAt(value, 'request', ['domain', 'descriptors', 'hitsAddend']);
  return {
    domain: textAt(fields['domain'], 'domain'),
    descriptors: listAt(fields['descriptors'], 'descriptors', LISTS_MAX).map(descriptorAt),
    hitsAddend: countAt(fields['hitsAddend'], 'hits_addend') ?? 0,
  };
}

function descriptorAt(value: unknown, i: number): RequestDescriptor {
  const path = `descriptors[${i}]`;
  const fields = fieldsAt(value, path, ['entries', 'limit', 'hitsAddend', 'isNegativeHits']);
  const { entries, limit, hitsAddend, isNegativeHits = false } = fields;
  if (typeof isNegativeHits !== 'boolean')
    throw new InvalidFieldError(`${path}.is_negative_hits`, 'must be true or false');
  const cost = countAt(hitsAddend, `${path}.hits_addend`);
  return {
    entries: listAt(entries, `${path}.entries`, LIST_ENTRIES_MAX).map((entry, at) =>
      entryAt(entry, `${path}.entries[${at}]`),
    ),
    isNegativeHits,
    ...(limit !== undefined && { limit: overrideAt(limit, `${path}.limit`) }),
    ...(cost !== undefined && { hitsAddend: cost }),
  };
}

function entryAt(value: unknown, path: string): ListEntry {
  const { key, value: text } = fieldsAt(value, path, ['key', 'value']);
  return { key: textAt(key, `${path}.key`), value: textAt(text, `${path}.value`) };
}

function overrideAt(value: unknown, path: string): LimitOverride {
  const { requestsPerUnit, unit = 0 } = fieldsAt(value, path, ['requestsPerUnit', 'unit']);
  if (typeof unit !== 'string' && typeof unit !== 'number')
    throw new InvalidFieldError(`${path}.unit`, 'must be the name of a unit');
  return { requestsPerUnit: countAt(requestsPerUnit, `${path}.requests_per_unit`) ?? 0, unit };
}

/** The fields by their names in camel case. A field that is `null` counts as absent. */
function fieldsAt<Name extends string>(
  value: unknown,
  path: string,
  names: readonly Name[],
): { readonly [Field in Name]?: unknown } {
  const spelled = new Map<string, Name>(
    names.flatMap((name) => [
      [name, name],
      [snakeCase(name), name],
    ]),
  );
  const found: { [Field in Name]?: unknown } = {};
  for (const [spelling, field] of Object.entries(objectAt(value, path, [...spelled.keys()]))) {
    const name = spelled.get(spelling);
    if (name === undefined || field === null) continue;
    if (found[name] !== undefined) throw new InvalidFieldError(`${path}.${spelling}`, 'must appear once');
    found[name] = field;
  }
  return found;
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function textAt(value: unknown, path: string): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') throw new InvalidFieldError(path, 'must be text');
  return value;
}

function listAt(value: unknown, path: string, most: number): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > most)
    throw new InvalidFieldError(path, `must be a list of at most ${most}`);
  return value;
}

function countAt(value: unknown, path: string): number | undefined {
  if (value === undefined) return undefined;
  const count = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 0)
    throw new InvalidFieldError(path, 'must be an integer >= 0');
  return count;
}
