/** The frame of all views: who looks, whether it is live, and which view is shown. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { CustomersView } from './customers.tsx';
import { FaultsView } from './faults.tsx';
import { KeysView } from './keys.tsx';
import { type Feed, LiveFeed, NO_FEED } from './live-feed.ts';
import { Overview } from './overview.tsx';
import { TITLES, useView, type View, VIEWS } from './router.ts';
import { RulesView } from './rules.tsx';
import { keepToken, type Role, roleOf, tokenOf } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { currentTheme, onSystemTheme, putTheme, type Theme } from './theme.ts';
import { UsageView } from './usage.tsx';

const ROLES: Readonly<Record<Role, string>> = {
  open: 'open cluster: look only',
  read: 'read token: look only',
  admin: 'admin token',
};

function useFeed(token: string | undefined): Feed {
  const [feed, setFeed] = useState<Feed>(NO_FEED);
  useEffect(() => {
    // What another token showed is gone.
    setFeed(NO_FEED);
    const live = new LiveFeed(setFeed);
    live.start();
    return () => live.stop();
  }, [token]);
  return feed;
}

function useRole(token: string | undefined, status: Feed['status']): Role {
  const [role, setRole] = useState<Role>('open');
  const isLive = status === 'live';
  useEffect(() => {
    if (isLive) void roleOf(token).then(setRole);
  }, [token, isLive]);
  return role;
}

function useThemeSwitch(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(currentTheme);
  useEffect(() => putTheme(theme), [theme]);
  useEffect(() => onSystemTheme(setTheme), []);
  return [theme, () => setTheme(theme === 'dark' ? 'light' : 'dark')];
}

function Connection({ feed }: { readonly feed: Feed }): JSX.Element {
  const { status, cluster } = feed;
  const words = {
    connecting: 'connecting',
    live: `live, as node ${cluster?.self.id ?? '?'} sees it`,
    signIn: 'signed out',
    lost: 'not live',
  }[status];
  return (
    <p class={`connection ${status}`} role="status">
      <span class="dot" aria-hidden="true" />
      {words}
    </p>
  );
}

/** Where else the same is shown, while this node does not answer. */
function Elsewhere({ feed }: { readonly feed: Feed }): JSX.Element {
  const others = (feed.cluster?.nodes ?? []).filter(
    ({ id, http }) => http !== null && id !== feed.cluster?.self.id,
  );
  return (
    <div class="banner bad" role="alert">
      <p>
        <strong>Not live:</strong> {feed.reason}. What is shown is the last that was heard; this page asks
        again by itself.
      </p>
      {others.length > 0 && (
        <p>
          Look at another node:{' '}
          {others.map(({ id, http }) => (
            <a key={id} href={`${location.protocol}//${http ?? ''}/${location.hash}`}>
              node {id}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}

function Shown({
  view,
  feed,
  role,
}: {
  readonly view: View;
  readonly feed: Feed;
  readonly role: Role;
}): JSX.Element {
  switch (view) {
    case 'overview':
      return <Overview feed={feed} />;
    case 'rules':
      return <RulesView role={role} versionInForce={feed.cluster?.rulesVersion ?? null} />;
    case 'keys':
      return <KeysView role={role} />;
    case 'customers':
      return <CustomersView role={role} />;
    case 'usage':
      return <UsageView />;
    case 'faults':
      return <FaultsView faults={feed.faults} />;
  }
}

function Frame({
  view,
  header,
  children,
}: {
  readonly view: View;
  readonly header: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  const title = useRef<HTMLHeadingElement>(null);
  const before = useRef(view);
  useEffect(() => {
    document.title = `${TITLES[view]} – Quorate`;
    // Whoever listens to the page instead of seeing it is told what came.
    if (before.current !== view) title.current?.focus();
    before.current = view;
  }, [view]);
  const skip = (event: Event): void => {
    event.preventDefault();
    title.current?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the view
      </a>
      <header>
        <p class="brand">Quorate</p>
        {header}
      </header>
      <nav aria-label="Views">
        <ul>
          {VIEWS.map((each) => (
            <li key={each}>
              <a href={`#/${each}`} aria-current={each === view ? 'page' : undefined}>
                {TITLES[each]}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main">
        <h1 ref={title} tabIndex={-1}>
          {TITLES[view]}
        </h1>
        {children}
      </main>
    </>
  );
}

export function App(): JSX.Element {
  const view = useView();
  const [token, setToken] = useState(tokenOf);
  const [theme, switchTheme] = useThemeSwitch();
  const feed = useFeed(token);
  const role = useRole(token, feed.status);
  const sign = (given: string | undefined): void => {
    keepToken(given);
    setToken(given);
  };
  const header = useMemo(
    () => (
      <div class="who">
        {feed.status !== 'signIn' && <span class="role">{ROLES[role]}</span>}
        {token !== undefined && <button onClick={() => sign(undefined)}>Sign out</button>}
        <button
          onClick={switchTheme}
          aria-label={theme === 'dark' ? 'Use light colours' : 'Use dark colours'}
        >
          {theme === 'dark' ? 'Light' : 'Dark'}
        </button>
      </div>
    ),
    [feed.status, role, token, theme],
  );
  return (
    <Frame
      view={view}
      header={
        <>
          <Connection feed={feed} />
          {header}
        </>
      }
    >
      {feed.status === 'lost' && <Elsewhere feed={feed} />}
      {feed.status === 'signIn' ? (
        <SignIn isRefused={token !== undefined} reason={feed.reason} signIn={sign} />
      ) : (
        <Shown view={view} feed={feed} role={role} />
      )}
    </Frame>
  );
}
