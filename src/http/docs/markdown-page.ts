/** One page of `docs/`, from Markdown to HTML. Links between pages stay as they are: a node serves each page under its own path. */
import { posix } from 'node:path';
import { Marked, type Tokens } from 'marked';
import { escaped, htmlPage } from './html.ts';

const TAG = /<[^>]+>/g;
const NOT_IN_ANCHOR = /[^\p{L}\p{N}\s_-]/gu;

/**
 * @param path of the page below `docs/`, such as `concepts/promise.md`
 * @param pages the paths of all pages: a link to any other file is shown as its text alone, since a node does not serve it
 */
export function markdownPage(
  text: string,
  { path, pages }: { readonly path: string; readonly pages: ReadonlySet<string> },
): string {
  const seen = new Map<string, number>();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const html = this.parser.parseInline(tokens);
        return `<h${depth} id="${escaped(anchorOf(html.replaceAll(TAG, ''), seen))}">${html}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const html = this.parser.parseInline(tokens);
        return isServed(href, path, pages) ? `<a href="${escaped(href)}">${html}</a>` : html;
      },
      // The policy of these pages loads nothing.
      image: ({ text: alternative }: Tokens.Image) => `<em>${escaped(alternative)}</em>`,
      html: ({ text: raw }: Tokens.HTML | Tokens.Tag) => escaped(raw),
    },
  });
  const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
  const home = path === 'README.md' ? '' : `<p><a href="/docs">Documentation</a></p>`;
  return htmlPage(`${title} · Quorate`, `${home}${marked.parse(text, { async: false })}`);
}

/** As GitHub forms them, so that the same links work there. */
function anchorOf(heading: string, seen: Map<string, number>): string {
  const plain = heading
    .replaceAll(/&#?\w+;/g, '')
    .toLowerCase()
    .replaceAll(NOT_IN_ANCHOR, '')
    .trim();
  const anchor = plain.replaceAll(/\s/g, '-');
  const times = seen.get(anchor) ?? 0;
  seen.set(anchor, times + 1);
  return times === 0 ? anchor : `${anchor}-${times}`;
}

function isServed(href: string, path: string, pages: ReadonlySet<string>): boolean {
  if (/^(https?:|#)/.test(href)) return true;
  const [file = ''] = href.split('#');
  return pages.has(posix.join(posix.dirname(path), file));
}
