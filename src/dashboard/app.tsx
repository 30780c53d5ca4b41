/** The frame around all views: header, navigation, sign-in and the view that the address names. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { CustomersView } from './customers.tsx';
import { EventsView } from './faults.tsx';
import { type Feed, NO_FEED } from './feed.ts';
import { KeysView } from './keys.tsx';
import { LiveFeed } from './live-feed.ts';
import { Notice } from './notice.tsx';
import { Overview } from './overview.tsx';
import { TITLES, useView, type View, VIEWS } from './router.ts';
import { RulesView } from './rules.tsx';
import { keepToken, type Role, roleOf, tokenOf } from './session.ts';
import { type Severity, verdictOf } from './severity.ts';
import { SignIn } from './sign-in.tsx';
import { currentTheme, onSystemTheme, putTheme, type Theme } from './theme.ts';
import { UsageView } from './usage.tsx';
import { clockTime } from './words.ts';

const ROLES: Readonly<Record<Role, string>> = {
  open: 'open cluster (view only)',
  read: 'read token (view only)',
  admin: 'admin token',
};

function useFeed(token: string | undefined): Feed {
  const [feed, setFeed] = useState<Feed>(NO_FEED);
  useEffect(() => {
    // Another token may show less, so the old data goes.
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
  const { status, cluster, heardMillis } = feed;
  const words = {
    connecting: 'connecting',
    live: `live from node ${cluster?.self.id ?? '?'}`,
    signIn: 'signed out',
    lost: heardMillis === 0 ? 'not live' : `not live: as of ${clockTime(heardMillis)}`,
  }[status];
  return (
    <p class={`connection ${status}`} role="status">
      <span class="dot" aria-hidden="true" />
      {words}
    </p>
  );
}

const TROUBLE: readonly Severity[] = ['nodeDown', 'noLeader', 'outage'];

/** The notice on all pages but the overview. It shows only states in which requests fail, or soon may. */
function Trouble({ feed }: { readonly feed: Feed }): JSX.Element | null {
  const verdict = verdictOf(feed, undefined);
  if (verdict === undefined) return null;
  const isReported = TROUBLE.includes(verdict.severity) || feed.status === 'lost';
  return isReported ? <Notice verdict={verdict} /> : null;
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
      return <EventsView faults={feed.faults} node={feed.cluster?.self.id} />;
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
    // Moving the focus makes a screen reader announce the new view.
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

/** The whole page. */
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
      {view !== 'overview' && feed.status !== 'signIn' && <Trouble feed={feed} />}
      {feed.status === 'signIn' ? (
        <SignIn isRefused={token !== undefined} reason={feed.reason} signIn={sign} />
      ) : (
        <Shown view={view} feed={feed} role={role} />
      )}
    </Frame>
  );
}
