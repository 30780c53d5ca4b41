/** The facts about a request that the middleware needs, in one form for all frameworks. */

/** A request of any framework. */
export interface RequestFacts {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  /** The address of the connection, which can be that of a proxy. */
  readonly peerAddress: string | undefined;
  /**
   * Returns the value of a header.
   *
   * @param name in lower case. A header that occurs several times is joined with commas.
   */
  readonly header: (name: string) => string | undefined;
}

/** Header fields in the form of Node's `IncomingMessage`. */
export type NodeHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns the value of a header; several values are joined with commas.
 *
 * @param name in lower case
 */
export function headerOf(headers: NodeHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value.join(', ') : value;
}

/** Returns the path of a URL without query and fragment. @example pathOfUrl('/a?b=1') // '/a' */
export function pathOfUrl(url: string): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}
