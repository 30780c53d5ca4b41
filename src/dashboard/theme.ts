/** Light or dark: as the system says, until whoever looks says otherwise in this tab. */

export type Theme = 'light' | 'dark';

const KEY = 'quorate-theme';
const SYSTEM = matchMedia('(prefers-color-scheme: dark)');

function systemTheme(): Theme {
  return SYSTEM.matches ? 'dark' : 'light';
}

export function currentTheme(): Theme {
  const kept = sessionStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : systemTheme();
}

/** Puts it in force, and keeps it if it is not the system's own. */
export function putTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
  if (theme === systemTheme()) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, theme);
}

/** @returns what ends it */
export function onSystemTheme(changed: (theme: Theme) => void): () => void {
  const listener = (): void => changed(currentTheme());
  SYSTEM.addEventListener('change', listener);
  return () => SYSTEM.removeEventListener('change', listener);
}
