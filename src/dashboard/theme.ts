/** Light or dark colours: as the system says, unless the viewer chose otherwise in this tab. */

/** The two colour schemes. */
export type Theme = 'light' | 'dark';

const KEY = 'quorate-theme';
const SYSTEM = matchMedia('(prefers-color-scheme: dark)');

function systemTheme(): Theme {
  return SYSTEM.matches ? 'dark' : 'light';
}

/** The theme to use now. */
export function currentTheme(): Theme {
  const kept = sessionStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : systemTheme();
}

/** Switches to the theme, and remembers it in this tab if the system uses the other one. */
export function putTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
  if (theme === systemTheme()) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, theme);
}

/** Calls back when the system changes its theme. @returns a function that stops this */
export function onSystemTheme(changed: (theme: Theme) => void): () => void {
  const listener = (): void => changed(currentTheme());
  SYSTEM.addEventListener('change', listener);
  return () => SYSTEM.removeEventListener('change', listener);
}
