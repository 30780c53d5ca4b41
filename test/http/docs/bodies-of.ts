/**
 * Generates bodies that a schema of docs/openapi.json accepts, and variants with one thing changed: at a bound,
 * missing, unknown, or of another type.
 */
import fc from 'fast-check';
import { resolved, type Schema, wrongIn } from './described.ts';

/** The longest value if the schema has no bound. */
const LENGTH_MAX = 8;
const TEXT = 'aZ0x9';

type Schemas = Readonly<Record<string, Schema>>;

/**
 * @param schema as in the document @param unless bodies to leave out: the listener refuses them, which no schema can
 * express
 */
export function bodiesOf(
  schema: Schema,
  unless: (body: unknown) => boolean = () => false,
): fc.Arbitrary<unknown> {
  return valueOf(schema).filter((body) => wrongIn(schema, body).length === 0 && !unless(body));
}

/** Keeps the keywords of schemas that it knows; `filter` of `bodiesOf` applies the others. */
function valueOf(written: Schema): fc.Arbitrary<unknown> {
  const schema = whole(written);
  const { anyOf, type, enum: values, const: only } = schema;
  if (Array.isArray(anyOf)) {
    const { anyOf: _, ...base } = schema;
    return fc.oneof(...(anyOf as Schema[]).map((branch) => valueOf(both(base, branch))));
  }
  if (only !== undefined) return fc.constant(only);
  if (Array.isArray(values)) return fc.constantFrom(...(values as unknown[]));
  return fc.oneof(...[type].flat().map((each) => ofType(each, schema)));
}

function ofType(type: unknown, schema: Schema): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return integerOf(schema);
    case 'string':
      return textOf(schema);
    case 'array':
      return fc.array(valueOf(schema['items'] as Schema), {
        minLength: Number(schema['minItems'] ?? 0),
        maxLength: Math.min(Number(schema['maxItems'] ?? LENGTH_MAX), 3),
      });
    case 'object':
      return objectOf(schema);
    default:
      throw new Error(`unknown type: ${JSON.stringify(schema)}`);
  }
}

function integerOf({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema): fc.Arbitrary<number> {
  const [min, max] = [Number(minimum), Number(maximum)];
  return fc.oneof(fc.constantFrom(min, max), fc.integer({ min, max: Math.min(max, 2 ** 31 - 1) }));
}

function textOf({ minLength = 0, maxLength = LENGTH_MAX }: Schema): fc.Arbitrary<string> {
  const [min, max] = [Number(minLength), Number(maxLength)];
  const lengths = fc.oneof(
    fc.constantFrom(min, max),
    fc.integer({ min, max: Math.min(max, min + LENGTH_MAX) }),
  );
  return fc
    .tuple(lengths, fc.integer({ min: 0, max: TEXT.length - 1 }))
    .map(([length, from]) => TEXT.repeat(length).slice(from, from + length));
}

function objectOf(schema: Schema): fc.Arbitrary<unknown> {
  const { properties, propertyNames, additionalProperties, maxProperties = LENGTH_MAX } = schema;
  if (propertyNames !== undefined)
    return fc.dictionary(textOf(propertyNames as Schema), valueOf(additionalProperties as Schema), {
      minKeys: Number(schema['minProperties'] ?? 0),
      maxKeys: Number(maxProperties),
    });
  const fields = Object.entries((properties ?? {}) as Schemas).map(([name, each]) => [name, valueOf(each)]);
  const requiredKeys = (schema['required'] ?? []) as string[];
  return fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>, { requiredKeys });
}

/** The schema, with `$ref` resolved. */
function whole(schema: Schema): Schema {
  const { $ref, ...own } = schema;
  return $ref === undefined ? schema : { ...whole(resolved(schema)), ...own };
}

function both(base: Schema, branch: Schema): Schema {
  const ours = (base['properties'] ?? {}) as Schemas;
  const theirs = (branch['properties'] ?? {}) as Schemas;
  const properties = { ...ours };
  for (const [name, each] of Object.entries(theirs))
    properties[name] = { ...whole(properties[name] ?? {}), ...whole(each) };
  const required = [...((base['required'] ?? []) as []), ...((branch['required'] ?? []) as [])];
  return { ...base, ...branch, properties, required };
}

/** Values with the type of a field, or of none. */
const ODD = [
  null,
  true,
  'true',
  '1',
  -1,
  1.5,
  {},
  [],
  [1],
  { a: 'a' },
  { a: 1 },
  '',
  'a b',
  'ä',
  '\n',
  2 ** 53 - 1,
];

/** All keywords of a schema, with `$ref` resolved. */
function wordsIn(value: unknown): readonly (readonly [string, unknown])[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = Object.entries(Array.isArray(value) ? value : whole(value as Schema));
  return [...own, ...own.flatMap(([, each]) => wordsIn(each))];
}

/** @param depthMax greatest depth of a change; 0: the body itself */
export function mutated(schema: Schema, bodies: fc.Arbitrary<unknown>, depthMax = 99): fc.Arbitrary<unknown> {
  const bounds = wordsIn(schema).flatMap(([word, bound]) =>
    /^(?:min|max)(?:imum|[A-Z])/.test(word) ? [Number(bound)] : [],
  );
  const beside = [...new Set(bounds.flatMap((bound) => [bound, bound + 1]))];
  const sizes = fc.constantFrom(0, ...beside.filter((bound) => bound < 2_000));
  const odd = fc.oneof(
    fc.constantFrom<unknown>(...ODD),
    fc.constantFrom(0, ...beside.flatMap((bound) => [bound - 1, bound])),
    sizes.map((size) => 'x'.repeat(size)),
  );
  const name = fc.oneof(
    fc.constant('other'),
    sizes.map((size) => 'x'.repeat(size)),
  );
  return bodies.chain((body) =>
    fc.constantFrom(...placesIn(body, depthMax)).chain((place) =>
      fc
        .oneof<fc.Arbitrary<(old: unknown) => unknown>[]>(
          odd.map((each) => () => each),
          fc.constant(() => undefined),
          name.map((each) => (old) => (isFields(old) ? { ...old, [each]: 'a' } : each)),
          sizes.map((size) => (old) => repeated(old, size)),
        )
        .map((change) => changedAt(body, place, change)),
    ),
  );
}

type Place = readonly (string | number)[];

function placesIn(value: unknown, depth: number): Place[] {
  if (typeof value !== 'object' || value === null || depth <= 0) return [[]];
  const below = Object.entries(value).flatMap(([name, each]) =>
    placesIn(each, depth - 1).map((place) => [name, ...place]),
  );
  return [[], ...below];
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A list of `count` times its first item; an object with `count` fields; a text of `count` characters. */
function repeated(value: unknown, times: number): unknown {
  if (Array.isArray(value)) return Array.from({ length: times }, () => value[0] as unknown);
  const names = Array.from({ length: Math.min(times, 99) }, (_, i) => [`d${i}`, 'a']);
  return isFields(value) ? Object.fromEntries(names) : 'x'.repeat(times);
}

/** A change to undefined removes a field. */
function changedAt(value: unknown, [name, ...rest]: Place, change: (old: unknown) => unknown): unknown {
  if (name === undefined) return change(value) ?? null;
  if (Array.isArray(value))
    return value.map((each: unknown, i) => (i === Number(name) ? changedAt(each, rest, change) : each));
  const { [name]: old, ...others } = value as Record<string, unknown>;
  const next = rest.length === 0 ? change(old) : changedAt(old, rest, change);
  return next === undefined ? others : { ...others, [name]: next };
}
