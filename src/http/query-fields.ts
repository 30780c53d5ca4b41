/** The parameters of a query, from the address as it came: each once, none that is not known, in one way to write text down only. */
import { InvalidBodyError } from './json-body.ts';

/**
 * @param names of all that there may be
 * @throws InvalidBodyError naming the parameter, or `query`
 */
export function queryFieldsOf<Name extends string>(
  url: string,
  names: readonly Name[],
): { readonly [Field in Name]?: string } {
  const found: { [Field in Name]?: string } = {};
  const begin = url.indexOf('?');
  const parts = begin === -1 || begin === url.length - 1 ? [] : url.slice(begin + 1).split('&');
  for (const part of parts) {
    const [said = '', ...rest] = part.split('=');
    const name = names.find((known) => known === said);
    if (name === undefined || Object.hasOwn(found, name))
      throw new InvalidBodyError('query', `query may hold ${names.join(', ')}, each once at most`);
    found[name] = decoded(name, rest.join('='));
  }
  return found;
}

/** Not by the parser of the server: that leaves bytes that are not UTF-8 as they were written. */
function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw new InvalidBodyError(name, `${name} must be percent-encoded UTF-8`);
  }
}
