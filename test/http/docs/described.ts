/** docs/openapi.json as the tests of this folder read it: from the file, without the product's code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ROOT } from '../../package/packed.ts';

export type Schema = Readonly<Record<string, unknown>>;
interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
}
/** A body or an answer. */
export interface Described {
  readonly content: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, Header>>;
}
interface Header {
  readonly description: string;
  readonly required?: boolean;
  readonly schema: Schema;
}
export interface Operation {
  readonly operationId: string;
  readonly description: string;
  readonly security?: readonly Schema[];
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: Described;
  readonly responses: Readonly<Record<string, Described>>;
}
interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Schema[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
}

export const DOCUMENT = JSON.parse(readFileSync(join(ROOT, 'docs', 'openapi.json'), 'utf8')) as Document;
export const SCHEMAS = DOCUMENT.components['schemas'] ?? {};

export function refTo(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A part of the document, or the part that it refers to. */
export function resolved<Part>(part: Part): Part {
  const { $ref } = part as { readonly $ref?: string };
  if ($ref === undefined) return part;
  const [, , kind = '', name = ''] = $ref.split('/');
  return DOCUMENT.components[kind]?.[name] as Part;
}

/** The operations by method and path, in the notation of the router. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map(
  Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path.replace('/rules/{ruleId}', '/rules/*').replaceAll(/\{(\w+)\}/g, ':$1')}`,
      {
        ...operation,
        parameters: ((operation as Partial<Operation>).parameters ?? []).map(resolved),
        responses: Object.fromEntries(
          Object.entries(operation.responses).map(([status, answer]) => [status, resolved(answer)]),
        ),
      },
    ]),
  ),
);

export function operationOf(route: string): Operation {
  const operation = OPERATIONS.get(route);
  if (operation === undefined) throw new Error(`${route} is not in the document`);
  return operation;
}

/** Every body and answer, by its place in the document. */
export function allContent(): readonly (readonly [where: string, media: Media])[] {
  return [...OPERATIONS].flatMap(([route, { requestBody, responses }]) =>
    Object.entries({ ...(requestBody !== undefined && { body: requestBody }), ...responses }).flatMap(
      ([part, { content }]) =>
        Object.entries(content).map(([type, media]) => [`${route}, ${part}, ${type}`, media] as const),
    ),
  );
}

/** Keywords that JSON Schema does not have are errors. */
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'security', 'paths', 'components']);
ajv.addSchema({ $id: 'listener', ...closed(DOCUMENT) });
const validators = new Map<string, ValidateFunction>();

/** The same schema, but unknown fields are errors unless it explicitly allows them: nodes send no others. */
function closed(value: object): object {
  return JSON.parse(JSON.stringify(value), (_, each: Schema | null) =>
    each?.['type'] === 'object' && each['properties'] !== undefined
      ? { additionalProperties: false, ...each }
      : each,
  ) as object;
}

/** The errors of `value`; empty: none. */
export function wrongIn(schema: Schema, value: unknown): readonly string[] {
  const text = JSON.stringify(closed(schema)).replaceAll('"#/', '"listener#/');
  const validate = validators.get(text) ?? ajv.compile(JSON.parse(text) as Schema);
  validators.set(text, validate);
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Headers of every HTTP answer; the document describes all others. */
const COMMON_HEADERS = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
]);

function wrongInHeaders({ headers = {} }: Described, answered: Schema): readonly string[] {
  const described = new Map(
    Object.entries(headers).map(([name, each]) => [name.toLowerCase(), resolved(each)]),
  );
  const unknown = Object.keys(answered).filter((name) => !COMMON_HEADERS.has(name) && !described.has(name));
  const missing = [...described].filter(([name, { required }]) => required === true && !(name in answered));
  const wrong = [...described].flatMap(([name, { schema }]) => {
    const value = answered[name];
    if (value === undefined) return [];
    return wrongIn(schema, schema['type'] === 'integer' ? Number(value) : value).map(
      (what) => `${name} ${what}`,
    );
  });
  return [
    ...unknown.map((name) => `header ${name}`),
    ...missing.map(([name]) => `no header ${name}`),
    ...wrong,
  ];
}

/** The errors of an answer of a route; empty: it matches the document. */
export function wrongInAnswer(
  route: string,
  answer: { readonly statusCode: number; readonly headers: Schema; readonly body: string },
): readonly string[] {
  const said = operationOf(route).responses[answer.statusCode];
  if (said === undefined) return [`${route} may not answer ${answer.statusCode}: ${answer.body}`];
  const [type = ''] = String(answer.headers['content-type']).split(';');
  const media = said.content[type];
  if (media === undefined) return [`${route} may not answer ${answer.statusCode} with ${type}`];
  const wrong = wrongIn(media.schema, type.endsWith('json') ? JSON.parse(answer.body) : answer.body);
  return [...wrong, ...wrongInHeaders(said, answer.headers)].map(
    (what) => `${route} ${answer.statusCode}: ${what} in ${answer.body}`,
  );
}
