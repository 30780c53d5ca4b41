/** What all frameworks tell of a request, in one form. Plain data. */

export interface RequestFacts {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Of the connection that it came by: perhaps a proxy's. */
  readonly peerAddress: string | undefined;
  /** @param name in lower case. A header that is there several times is joined by commas. */
  readonly header: (name: string) => string | undefined;
}

/** Header fields as Node has them. */
export type NodeHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export function headerOf(headers: NodeHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value.join(', ') : value;
}

export function pathOfUrl(url: string): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}
