/**
 * The rule `rooms/imports`: which folder may import which. `.oxlintrc.json` has the table; what is not in a row is forbidden, so
 * a new folder needs a row of its own. It knows nothing of packages, and nothing of what is imported.
 */
import { dirname, join, relative } from 'node:path';

/** The row of a file: the longest that it lies in. Files outside of all rows (tests, benches) import what they like. */
function roomOf(path, rooms) {
  const around = rooms.filter((room) => path.startsWith(`${room}/`));
  return around.sort((a, b) => b.length - a.length)[0];
}

function create(context) {
  const [table] = context.options;
  const rooms = Object.keys(table);
  const path = relative(context.cwd, context.filename);
  const room = roomOf(path, rooms);
  if (room === undefined) return {};
  const check = ({ source }) => {
    if (typeof source?.value !== 'string' || !source.value.startsWith('.')) return;
    const target = join(dirname(path), source.value);
    const targetRoom = roomOf(target, rooms);
    if (targetRoom === room || table[room].includes(targetRoom) || table[room].includes(target)) return;
    const known = table[room].length === 0 ? 'nothing of ours' : table[room].join(', ');
    context.report({ node: source, message: `${room}/ imports ${target}, and may import ${known}.` });
  };
  return {
    ImportDeclaration: check,
    ImportExpression: check,
    ExportNamedDeclaration: check,
    ExportAllDeclaration: check,
    TSImportType: check,
  };
}

const imports = {
  meta: {
    type: 'problem',
    schema: [
      {
        type: 'object',
        description: 'for each folder, the folders and single files that it may import',
        additionalProperties: { type: 'array', items: { type: 'string' } },
      },
    ],
  },
  create,
};

export default { meta: { name: 'rooms' }, rules: { imports } };
