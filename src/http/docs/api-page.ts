/** `docs/openapi.json` as a page for people. */
import { escaped, htmlPage } from './html.ts';

/** The part of an OpenAPI document that the page shows. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  /** Operations by path and HTTP method. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}
interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly Described[];
  readonly requestBody?: Described;
  readonly responses: Readonly<Record<string, Described>>;
}
/** A parameter, a body or a response. */
interface Described {
  readonly name?: string;
  readonly in?: string;
  readonly description?: string;
  readonly schema?: object;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
}

const SHARED = /^#\/components\/(parameters|responses)\/(\w+)$/;

/** The page as HTML, without scripts and without anything from other sites. */
export function apiPage({ info, tags, paths, components }: OpenApiDocument): string {
  const whole = JSON.parse(JSON.stringify(paths), (_, value: unknown) => {
    const [, kind = '', name = ''] = SHARED.exec(refOf(value)) ?? [];
    return components[kind]?.[name] ?? value;
  }) as typeof paths;
  const operations = Object.entries(whole).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    return `<h2>${escaped(name)}</h2>${own.map(operationHtml).join('')}`;
  });
  const schemas = Object.entries(components['schemas'] ?? {}).map(
    ([name, schema]) =>
      `<details id="${escaped(name)}"><summary><code>${escaped(name)}</code></summary><div>${jsonHtml(schema)}</div></details>`,
  );
  return htmlPage(
    `${info.title} API`,
    `<p><a href="/docs">Documentation</a></p><h1>${escaped(info.title)} API</h1><p>${escaped(info.description)}</p>
<p>For programs: <a href="/openapi.json">openapi.json</a>, OpenAPI 3.1.</p>
${groups.join('\n')}<h2>Schemas</h2>${schemas.join('\n')}`,
  );
}

function operationHtml(reported: { method: string; path: string; operation: Operation }): string {
  const { summary, description, parameters = [], requestBody, responses } = reported.operation;
  const asked = parameters.map(({ name = '', ...each }) =>
    rowHtml(`<code>${escaped(name)}</code>`, escaped(each.in ?? ''), describedHtml(each)),
  );
  const answers = Object.entries(responses).map(([status, each]) => rowHtml(status, describedHtml(each)));
  return `<details><summary><span class="method">${reported.method.toUpperCase()}</span> <code>${escaped(reported.path)}</code> ${escaped(summary)}</summary><div>
<p>${escaped(description)}</p><table>${asked.join('')}</table>
${requestBody === undefined ? '' : `<h4>Body</h4>${describedHtml(requestBody)}`}
<h4>Answers</h4><table>${answers.join('')}</table></div></details>
`;
}

function rowHtml(...cells: readonly string[]): string {
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function describedHtml({ description = '', schema, content = {} }: Described): string {
  const forms = Object.entries(content).map(
    ([type, { schema: each, example }]) =>
      `<p><code>${escaped(type)}</code> ${schemaHtml(each)}</p>${example === undefined ? '' : jsonHtml(example)}`,
  );
  return `${escaped(description)} ${schema === undefined ? '' : schemaHtml(schema)}${forms.join('')}`;
}

/** A link to the schema if it has a name, otherwise the schema itself. */
function schemaHtml(schema: object): string {
  const name = escaped(refOf(schema).split('/').at(-1) ?? '');
  return name === '' ? `<code>${escaped(JSON.stringify(schema))}</code>` : `<a href="#${name}">${name}</a>`;
}

function refOf(value: unknown): string {
  const { $ref = '' } = (value ?? {}) as { readonly $ref?: string };
  return $ref;
}

function jsonHtml(value: unknown): string {
  return `<pre>${escaped(JSON.stringify(value, null, 2))}</pre>`;
}
