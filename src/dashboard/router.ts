/**
 * Reads and writes the part of the address after `#/`, which names the view. The browser never sends this part to a
 * server.
 */
import { useEffect, useState } from 'preact/hooks';

/** The views, in the order of the navigation. */
export const VIEWS = ['overview', 'rules', 'keys', 'customers', 'usage', 'faults'] as const;
/** Name of a view in the address. */
export type View = (typeof VIEWS)[number];

/** Title of each view. */
export const TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  rules: 'Rules',
  keys: 'Keys',
  customers: 'Customers',
  usage: 'Usage',
  faults: 'Events',
};

/** `#/key/…` is the page of one key. It belongs to the view `keys`. */
const ONE_KEY = 'key';

/** A parsed address. */
export interface Route {
  readonly view: View;
  /** The key whose page is shown; empty if none is. */
  readonly key: string;
  /** Search text of the view; empty if there is none. */
  readonly sought: string;
}

/** Address of the page of a key. */
export function keyHref(key: string): string {
  return `#/${ONE_KEY}/${encodeURIComponent(key)}`;
}

/** Address of a view, with a search text if given. */
export function viewHref(view: View, sought = ''): string {
  return sought === '' ? `#/${view}` : `#/${view}/${encodeURIComponent(sought)}`;
}

/** Parses an address. An unknown view means the overview. */
export function routeIn(hash: string): Route {
  const [, name = '', ...rest] = hash.split('/');
  const named = decoded(rest.join('/'));
  if (name === ONE_KEY) return { view: 'keys', key: named, sought: '' };
  const view = VIEWS.find((each) => each === name) ?? 'overview';
  return { view, key: '', sought: named };
}

/** A hand-written address may be malformed. Then the text is taken literally. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Hook: the current route. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeIn(location.hash));
  useEffect(() => {
    const changed = (): void => setRoute(routeIn(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

/** Hook: the current view. */
export function useView(): View {
  return useRoute().view;
}
