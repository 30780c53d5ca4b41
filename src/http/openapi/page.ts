/** The document as a page for people: without a script, and without anything from elsewhere. */
import { createHash } from 'node:crypto';
import type { OpenApiDocument } from './document.ts';
import type { Schema } from './schema.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --blue: #2563eb; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; border-radius: 4px; }
details { border: 1px solid var(--line); border-radius: 4px; margin: .4rem 0; }
summary { padding: .4rem .8rem; cursor: pointer; }
details > div { padding: 0 .8rem .6rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-top: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
.method { font-weight: 700; color: var(--blue); display: inline-block; min-width: 4.2rem; }
a { color: var(--blue); }
`;
/** Nothing is loaded, nothing runs, and the page stands in no other. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function pageOf({ info, tags, paths, components }: OpenApiDocument): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method,
      path,
      operation: operation as unknown as Told,
    })),
  );
  const groups = tags.map(({ name }) => {
    const own = all.filter(({ operation }) => operation.tags.includes(name));
    return `<h2>${escaped(name)}</h2>${own.map(operationHtml).join('')}`;
  });
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="${escaped(name)}"><summary><code>${escaped(name)}</code></summary><div>${jsonHtml(schema)}</div></details>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(info.title)} API</title><style>${STYLE}</style></head>
<body><h1>${escaped(info.title)} API</h1><p>${escaped(info.description)}</p>
<p>For programs: <a href="/openapi.json">openapi.json</a>, OpenAPI 3.1.</p>
${groups.join('\n')}<h2>Schemas</h2>${schemas.join('\n')}</body></html>
`;
}

/** An operation of the document, as far as the page shows it. */
interface Told {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Content }>>;
}
type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;

function operationHtml({
  method,
  path,
  operation,
}: {
  method: string;
  path: string;
  operation: Told;
}): string {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const rows = parameters.map(
    ({ name, in: where, description: says, schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${escaped(where)}</td><td>${escaped(says ?? '')} <code>${escaped(JSON.stringify(schema))}</code></td></tr>`,
  );
  const answers = Object.entries(responses).map(
    ([status, answer]) =>
      `<tr><td>${escaped(status)}</td><td>${escaped(answer.description)}</td><td>${contentHtml(answer.content)}</td></tr>`,
  );
  return `<details><summary><span class="method">${escaped(method.toUpperCase())}</span> <code>${escaped(path)}</code> ${escaped(summary)}</summary><div>
<p>${escaped(description)}</p>${rows.length === 0 ? '' : `<table>${rows.join('')}</table>`}
${requestBody === undefined ? '' : `<h4>Body</h4>${contentHtml(requestBody.content)}`}
<h4>Answers</h4><table>${answers.join('')}</table></div></details>
`;
}

function contentHtml(content: Content): string {
  return Object.entries(content)
    .map(([type, { schema, example }]) => {
      const to = schema['$ref'];
      const name = typeof to === 'string' ? (to.split('/').at(-1) ?? '') : '';
      const link = name === '' ? '' : ` <a href="#${escaped(name)}">${escaped(name)}</a>`;
      return `<code>${escaped(type)}</code>${link}${example === undefined ? '' : jsonHtml(example)}`;
    })
    .join('');
}

function jsonHtml(value: unknown): string {
  return `<pre>${escaped(JSON.stringify(value, null, 2))}</pre>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
