/**
 * Finds the place of an edit in the sources of the product, and returns the edited text of the module. A place is found
 * by its name in all files. An edit with no place, or with two, is an error.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseSync, transformWithOxc } from 'vite';
import type { Edit } from './mutant.ts';

const FOLDERS = ['raft', 'src', 'storage'];
/** The root of the repository, whether this file runs compiled or not. */
const ROOT = fileURLToPath(
  new URL(import.meta.url.includes('/dist/test/') ? '../../../..' : '../../..', import.meta.url),
);

/** A part of a file, by offsets. */
interface Span {
  readonly start: number;
  readonly end: number;
}

interface Place extends Span {
  readonly file: string;
}

/** The parts of the syntax tree that are read here. */
interface Node extends Span {
  readonly type: string;
  readonly declaration?: Node | null;
  readonly declarations?: readonly Node[];
  readonly id?: { readonly name?: string } | null;
  readonly key?: { readonly type: string; readonly name?: string };
  readonly body?: { readonly body?: readonly Node[] };
}

export class Sources {
  /** The text of each file by its path in the repository, like `raft/log.ts`. */
  readonly #texts = new Map<string, string>();
  readonly #comments = new Map<string, readonly Span[]>();
  readonly #places = new Map<string, Place[]>();

  /** Reads all sources of the product. */
  static read(): Sources {
    const sources = new Sources();
    for (const folder of FOLDERS) {
      for (const name of readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' })) {
        const file = `${folder}/${name}`;
        if (name.endsWith('.ts')) sources.add(file, readFileSync(`${ROOT}/${file}`, 'utf8'));
      }
    }
    return sources;
  }

  add(file: string, text: string): void {
    const { program, comments, errors } = parseSync(file, text);
    if (errors.length > 0) throw new Error(`${file} is not TypeScript: ${errors[0]?.message}`);
    this.#texts.set(file, text);
    this.#comments.set(file, comments);
    for (const node of program.body as unknown as readonly Node[]) this.#addPlaces(file, node);
  }

  #addPlaces(file: string, statement: Node): void {
    const node = statement.declaration ?? statement;
    const name = node.id?.name;
    if (node.type === 'FunctionDeclaration') this.#addPlace(file, name, node);
    for (const each of node.declarations ?? []) this.#addPlace(file, each.id?.name, each);
    if (node.type !== 'ClassDeclaration') return;
    for (const member of node.body?.body ?? []) {
      const { key } = member;
      const isPrivate = key?.type === 'PrivateIdentifier';
      this.#addPlace(file, `${name}.${isPrivate ? '#' : ''}${key?.name}`, member);
    }
  }

  #addPlace(file: string, name: string | undefined, { start, end }: Node): void {
    if (name === undefined) return;
    this.#places.set(name, [...(this.#places.get(name) ?? []), { file, start, end }]);
  }

  /** Where `edit` applies. @throws unless that is one place */
  locate(edit: Edit): Place {
    const named = this.#places.get(edit.in) ?? [];
    if (named.length === 0) throw new Error(`there is no ${edit.in}`);
    const found = named.flatMap((place) => this.#find(place, edit.find));
    const [only] = found;
    if (only === undefined || found.length > 1)
      throw new Error(`${edit.in} has ${found.length} places, not one, for: ${edit.find}`);
    return only;
  }

  #find(place: Place, wanted: string): Place[] {
    const text = this.#texts.get(place.file) ?? '';
    const offsets = this.#meaningful(place, text);
    const bare = offsets.map((offset) => text[offset]).join('');
    const needle = wanted.replaceAll(/\s/g, '');
    const found: Place[] = [];
    for (let at = bare.indexOf(needle); at >= 0; at = bare.indexOf(needle, at + 1)) {
      const start = offsets[at] ?? 0;
      const end = (offsets[at + needle.length - 1] ?? 0) + 1;
      found.push({ file: place.file, start, end });
    }
    return found;
  }

  /** The offsets of all characters but blanks and comments. */
  #meaningful({ file, start, end }: Place, text: string): number[] {
    const comments = (this.#comments.get(file) ?? []).filter(
      (each) => each.start >= start && each.end <= end,
    );
    const offsets: number[] = [];
    for (let at = start; at < end; at += 1) {
      const comment = comments.find((each) => each.start === at);
      if (comment !== undefined) at = comment.end;
      if (/\S/.test(text[at] ?? ' ')) offsets.push(at);
    }
    return offsets;
  }

  /** The files that change, with their text after the edits. */
  edited(edits: readonly Edit[]): Map<string, string> {
    const places = edits.map((edit) => ({ ...this.locate(edit), replace: edit.replace }));
    const texts = new Map<string, string>();
    // From the end, so that earlier offsets stay valid.
    for (const { file, start, end, replace } of places.sort((a, b) => b.start - a.start)) {
      const text = texts.get(file) ?? this.#texts.get(file) ?? '';
      texts.set(file, text.slice(0, start) + replace + text.slice(end));
    }
    return texts;
  }
}

/** The same files compiled, by their path in `dist`, like `raft/log.js`. */
export async function compiled(texts: ReadonlyMap<string, string>): Promise<Map<string, string>> {
  const modules = new Map<string, string>();
  for (const [file, text] of texts) {
    const { code } = await transformWithOxc(text, file, {
      sourcemap: false,
      target: 'es2023',
      typescript: { rewriteImportExtensions: 'rewrite', onlyRemoveTypeImports: true },
    });
    modules.set(file.replace(/\.ts$/, '.js'), code);
  }
  return modules;
}
