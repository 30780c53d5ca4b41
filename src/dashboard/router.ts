/** Which view is shown, and of what: the part of the address behind `#/`, which never leaves the browser. */
import { useEffect, useState } from 'preact/hooks';

export const VIEWS = ['overview', 'rules', 'keys', 'customers', 'usage', 'faults'] as const;
export type View = (typeof VIEWS)[number];

export const TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  rules: 'Rules',
  keys: 'Keys',
  customers: 'Customers',
  usage: 'Usage',
  faults: 'Events',
};

/** `#/key/…` is the page of one key, a part of the view of keys. */
const ONE_KEY = 'key';

export interface Route {
  readonly view: View;
  /** The page of this key; empty: of none. */
  readonly key: string;
  /** What is searched for in the view; empty: nothing. */
  readonly sought: string;
}

export function keyHref(key: string): string {
  return `#/${ONE_KEY}/${encodeURIComponent(key)}`;
}

export function viewHref(view: View, sought = ''): string {
  return sought === '' ? `#/${view}` : `#/${view}/${encodeURIComponent(sought)}`;
}

export function routeIn(hash: string): Route {
  const [, name = '', ...rest] = hash.split('/');
  const named = decoded(rest.join('/'));
  if (name === ONE_KEY) return { view: 'keys', key: named, sought: '' };
  const view = VIEWS.find((each) => each === name) ?? 'overview';
  return { view, key: '', sought: named };
}

/** Whoever types an address may write anything. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeIn(location.hash));
  useEffect(() => {
    const changed = (): void => setRoute(routeIn(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

export function useView(): View {
  return useRoute().view;
}
