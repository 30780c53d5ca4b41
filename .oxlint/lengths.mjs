/**
 * The rule `lengths/functions`: a function has at most so many lines. What is handed to `describe`, or does nothing but
 * call it, is a list of tests, and is not counted; each test in it is.
 */

/** `describe(...)`, `describe.skipIf(...)(...)`, `describe.each(...)(...)`. */
function isDescribe(callee) {
  if (callee.type === 'CallExpression') return isDescribe(callee.callee);
  if (callee.type === 'MemberExpression') return isDescribe(callee.object);
  return callee.type === 'Identifier' && callee.name === 'describe';
}

function listsTests({ parent, body }) {
  if (parent.type === 'CallExpression' && isDescribe(parent.callee)) return true;
  const calls = body.type === 'BlockStatement' ? body.body : [];
  return (
    calls.length > 0 &&
    calls.every(({ expression }) => expression?.type === 'CallExpression' && isDescribe(expression.callee))
  );
}

function create(context) {
  const [max] = context.options;
  const check = (node) => {
    const lines = node.loc.end.line - node.loc.start.line + 1;
    if (lines <= max || listsTests(node)) return;
    context.report({ node, message: `A function of ${lines} lines: at most ${max}.` });
  };
  return { FunctionDeclaration: check, FunctionExpression: check, ArrowFunctionExpression: check };
}

const functions = {
  meta: { type: 'suggestion', schema: [{ type: 'integer', minimum: 1 }] },
  create,
};

export default { meta: { name: 'lengths' }, rules: { functions } };
