/**
 * Assembles the package `@quorate/client` in a folder: the modules that services import, everything these import, and
 * the documentation. The files are copied from `dist`, so users of the package do not get the code of a node. It
 * neither compiles nor publishes.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, ...(import.meta.dirname.includes('/dist/') ? ['..'] : []), '..');
const COMPILED = join(ROOT, 'dist', 'src');

/** Import paths of the package, and their modules. */
const ENTRIES = {
  '.': 'client/index',
  './express': 'client/express',
  './fastify': 'client/fastify',
  './fetch': 'client/fetch',
  './hono': 'client/hono',
};
/** Documentation, by file name in the package: a file of this repository. */
const PAGES = {
  'README.md': 'src/client/PACKAGE.md',
  'GUIDE.md': 'docs/reference/client.md',
  'MIDDLEWARE.md': 'docs/reference/middleware.md',
};

const IMPORTED = /(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g;
/** Source maps are not in the package. */
const MAP_COMMENT = /^\/\/# sourceMappingURL=.*\n?/gm;
/** A link to another file. Its parts: text, path, and anchor with `#`. */
const LINK = /\[([^\]]+)\]\(([^)#\s]+\.md)(#[^)\s]*)?\)/g;

/**
 * Writes the files of the package. Run `npm run build` before.
 *
 * @param folder an empty directory
 */
export function assembleClientPackage(folder: string): void {
  const modules = Object.values(ENTRIES);
  for (const path of [...closureOf(modules, '.js'), ...closureOf(modules, '.d.ts')]) {
    const target = join(folder, 'dist', path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(join(COMPILED, path), 'utf8').replaceAll(MAP_COMMENT, ''));
  }
  for (const [name, page] of Object.entries(PAGES)) writeFileSync(join(folder, name), pageOfPackage(page));
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest(), undefined, 2)}\n`);
}

/** A page with links to the pages of the package. Of links to other pages only the text is kept. */
function pageOfPackage(page: string): string {
  const names = new Map(Object.entries(PAGES).map(([name, file]) => [file, name]));
  return readFileSync(join(ROOT, page), 'utf8').replaceAll(
    LINK,
    (_, text: string, path: string, anchor = '') => {
      const name = names.get(normalize(join(dirname(page), path)));
      return name === undefined ? text : `[${text}](${name}${anchor})`;
    },
  );
}

/** The modules and everything they import, as paths below `dist/src` with this ending. */
function closureOf(modules: readonly string[], ending: '.js' | '.d.ts'): ReadonlySet<string> {
  const paths = new Set(modules.map((module) => module + ending));
  for (const path of paths) {
    const text = readFileSync(join(COMPILED, path), 'utf8');
    for (const [, target = ''] of text.matchAll(IMPORTED)) {
      const imported = normalize(join(dirname(path), target)).replace(/\.[jt]s$/, ending);
      if (imported.startsWith('..')) throw new Error(`${path} imports ${target}, which is not below src/`);
      paths.add(imported);
    }
  }
  return paths;
}

/**
 * The package.json. Version, licence and supported Node are those of the repository. There are no dependencies, because
 * the types for frameworks only describe the parts in use.
 */
function manifest(): object {
  const { version, license, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly version: string;
    readonly license: string;
    readonly engines: { readonly node: string };
  };
  const exports = Object.entries(ENTRIES).map(([name, module]) => [
    name,
    { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` },
  ]);
  return {
    name: '@quorate/client',
    version,
    description:
      'Asks a Quorate cluster for grants; middleware for Express, Fastify, Hono and fetch handlers.',
    license,
    type: 'module',
    sideEffects: false,
    types: `./dist/${ENTRIES['.']}.d.ts`,
    exports: { ...Object.fromEntries(exports), './package.json': './package.json' },
    engines: { node: engines.node },
    publishConfig: { access: 'public' },
  };
}
