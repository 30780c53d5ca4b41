/** Which view is shown: the part of the address behind `#/`, which never leaves the browser. */
import { useEffect, useState } from 'preact/hooks';

export const VIEWS = ['overview', 'rules', 'users', 'customers', 'usage', 'faults'] as const;
export type View = (typeof VIEWS)[number];

export const TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  rules: 'Rules',
  users: 'Users',
  customers: 'Customers',
  usage: 'Usage',
  faults: 'Events',
};

function viewIn(hash: string): View {
  return VIEWS.find((view) => hash === `#/${view}`) ?? 'overview';
}

export function useView(): View {
  const [view, setView] = useState(viewIn(location.hash));
  useEffect(() => {
    const changed = (): void => setView(viewIn(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return view;
}
