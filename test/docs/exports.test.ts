/** Every symbol that a file of the product exports says in a docstring what it is. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../package/packed.ts';

const EXPORT = /^export (?:declare |abstract |async )*(?:const|function\*?|class|interface|type|enum) (\w+)/;
const DOCSTRING_END = /^\s*(?:\/\*\*.*)?\*\/\s*$/;
const ROOMS = ['src', 'raft', 'storage'];

function undocumentedIn(path: string): readonly string[] {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  return lines.flatMap((line, i) => {
    const [, name] = EXPORT.exec(line) ?? [];
    // Overloads and guards of the linter stand between a docstring and its symbol.
    const above = lines
      .slice(0, i)
      .findLast((other) => !/^\s*(?:\/\/ ox|export function \w+\(.*;$)/.test(other));
    return name === undefined || DOCSTRING_END.test(above ?? '') ? [] : [`${path}:${i + 1} ${name}`];
  });
}

it.each(ROOMS)('%s exports nothing without a docstring', (room) => {
  const files = readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(room, path));
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap(undocumentedIn)).toEqual([]);
});
