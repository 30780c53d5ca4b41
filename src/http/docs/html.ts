/**
 * The common parts of all pages below `/docs`: their style, their content security policy, and how text becomes HTML.
 */
import { createHash } from 'node:crypto';

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

/** The page loads nothing, runs nothing, and cannot be framed. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** @param body HTML; @param title plain text */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body>${body}</body></html>
`;
}

/** Text as HTML shows it, also within an attribute. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
