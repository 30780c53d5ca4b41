/** Parses the query of a URL: each parameter at most once, no unknown parameter, and only valid UTF-8. */
import { InvalidBodyError } from './json-body.ts';

/**
 * The parameters in the query of a URL.
 *
 * @param names all known parameters
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

/** Fastify's own parser is not used, because it leaves invalid UTF-8 undecoded. */
function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch {
    throw new InvalidBodyError(name, `${name} must be percent-encoded UTF-8`);
  }
}
