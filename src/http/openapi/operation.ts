/** An operation as it is described, and how that becomes one of OpenAPI. */
import { rolesOf } from '../route-roles.ts';
import type { SchemaName } from './components.ts';
import { ref, type Schema } from './schema.ts';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: Schema;
  readonly description?: string;
}

export interface Described {
  /** A schema by name, or the type of something else than JSON. */
  readonly is: SchemaName | { readonly type: string };
  readonly example?: unknown;
  /** Another type than that of JSON, with this schema. */
  readonly type?: string;
  readonly says?: string;
}

export interface Operation {
  readonly group: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: Described;
  /** Of a body that may be absent. */
  readonly isBodyOptional?: true;
  /** By status. Those that all operations of a role have are added. */
  readonly answers: Readonly<Record<number, Described>>;
}

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';
const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: 'done, or granted',
  201: 'created',
  202: 'done, and not everywhere yet',
  400: 'the request is malformed: `field` and `message` say what',
  401: 'no valid token was shown, in a closed cluster',
  403: 'not allowed, or blocked by an operator',
  404: 'there is no such thing',
  409: 'the cluster does not want it',
  412: 'another version is in force than `if-match` says',
  422: 'another request was made under this requestId, or it was given back',
  429: 'over the limit',
  503: 'it cannot be done now: ask again',
};

/** @param route of the router, by method and path, as `ROUTE_ROLES` has them */
export function pathOf(route: string): string {
  const [, path = ''] = route.split(' ');
  return path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{ruleId}');
}

/** As OpenAPI has it. */
export function operationObject(route: string, operation: Operation): Schema {
  const { group, summary, description, parameters = [], body, isBodyOptional, answers } = operation;
  const [method = '', path] = route.split(' ');
  const roles = rolesOf(method, path);
  const isClosed = roles !== 'anybody';
  const all: Record<number, Described> = {
    ...(isClosed && { 401: { is: 'Fault' }, 403: { is: 'Blocked' } }),
    ...answers,
  };
  const said = isClosed ? `In a closed cluster: a token of role ${roles.join(' or ')}.` : 'Needs no token.';
  return {
    operationId: operationId(method, route),
    tags: [group],
    summary,
    description: description === undefined ? said : `${description} ${said}`,
    security: isClosed ? [{ token: [] }, {}] : [{}],
    ...(parameters.length > 0 && {
      parameters: parameters.map((parameter) => ({
        ...parameter,
        ...(parameter.in === 'path' && { required: true }),
      })),
    }),
    ...(body !== undefined && {
      requestBody: { required: isBodyOptional !== true, content: contentOf(body) },
    }),
    responses: Object.fromEntries(
      Object.entries(all).map(([status, answer]) => [
        status,
        { description: answer.says ?? STATUS_TEXT[Number(status)] ?? status, content: contentOf(answer) },
      ]),
    ),
  };
}

function contentOf({ is, example, type }: Described): Schema {
  if (typeof is !== 'string')
    return { [is.type]: { schema: is.type === JSON_TYPE ? {} : { type: 'string' } } };
  const own = type ?? (is === 'Unavailable' ? PROBLEM_TYPE : JSON_TYPE);
  return { [own]: { schema: ref(is), ...(example !== undefined && { example }) } };
}

function operationId(method: string, route: string): string {
  const words = pathOf(route)
    .split(/[^\w]+/)
    .filter((word) => word !== '' && word !== 'v1');
  return [method.toLowerCase(), ...words.map((word) => word[0]?.toUpperCase() + word.slice(1))].join('');
}
