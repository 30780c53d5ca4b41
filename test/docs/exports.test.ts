/** Every symbol that a file of the product exports has a docstring. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../package/packed.ts';

const EXPORT = /^export (?:declare |abstract |async )*(?:const|function\*?|class|interface|type|enum) (\w+)/;
const DOCSTRING_END = /^\s*(?:\/\*\*.*)?\*\/\s*$/;
const OVERLOAD = /^export function \w+\(.*;$/;
const ROOMS = ['src', 'raft', 'storage'];

/** A line that continues a group under one docstring: the constants before it, or the value whose type this is. */
const OF_THE_GROUP = /^(?:export )?const \w+ = .*;$|^\] as const;$|^\} as const;$/;

function undocumentedIn(path: string): readonly string[] {
  const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
  return lines.flatMap((line, i) => {
    const [, name] = EXPORT.exec(line) ?? [];
    const above =
      lines.slice(0, i).findLast((other) => !OF_THE_GROUP.test(other) && !OVERLOAD.test(other)) ?? '';
    const isOfValue = /^export type \w+ = (?:keyof )?\(?typeof /.test(line);
    return name === undefined || isOfValue || DOCSTRING_END.test(above) ? [] : [`${path}:${i + 1} ${name}`];
  });
}

it.each(ROOMS)('%s exports nothing without a docstring', (room) => {
  const files = readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(room, path));
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap(undocumentedIn)).toEqual([]);
});
