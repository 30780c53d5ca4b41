/** The view that finds keys, by the whole key or by a value in it, and shows the page of one key. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { USAGE_TOP_MAX } from '../api/usage.ts';
import { ScrollTable } from './cluster-tables.tsx';
import { KeyPage } from './key-page.tsx';
import { isKeyText, keysMeant, KEYS_SOUGHT_MAX } from './key-search.ts';
import { definitionsOf, type KeyStatus, limitsOfKey, type Verdict, verdictOn } from './key-status.ts';
import { Lookup } from './lookup.tsx';
import { usePolled, readUsage } from './polled.ts';
import { keyHref, useRoute, viewHref } from './router.ts';
import type { KnownRules } from './rules-text.ts';
import { ask, messageOf, type Role } from './session.ts';

const AGAIN_MILLIS = 5_000;
const HOUR_MINUTES = 60;
const HINT =
  'A key such as user=ada or customer=acme, or only a value such as ada to find every key with it.';
const ORDER: readonly Verdict[] = ['blocked', 'denied', 'counted', 'nothing', 'noRule'];

interface Found {
  readonly key: string;
  readonly verdict: Verdict;
  readonly words: string;
}

interface Search {
  /** Worst first. */
  readonly found: readonly Found[];
  /** Empty if all reads succeeded. */
  readonly failure: string;
  /** The usage figures showed no keys, so keys of several values could not be found. */
  readonly isOfRulesAlone: boolean;
}

async function search(text: string): Promise<Search> {
  const [rules, usage] = await Promise.all([
    ask('/v1/rules'),
    readUsage({ minutes: HOUR_MINUTES, top: USAGE_TOP_MAX }),
  ]);
  if (rules.status !== 200) return { found: [], failure: messageOf(rules), isOfRulesAlone: false };
  const definitions = definitionsOf(rules.body as KnownRules);
  const { top } = usage.report ?? {};
  const keys = keysMeant(text, definitions, [...(top?.denied ?? []), ...(top?.allowed ?? [])]);
  const answers = await Promise.all(keys.map((key) => ask(`/v1/keys/${encodeURIComponent(key)}`)));
  const found: Found[] = [];
  let failure = '';
  for (const [i, answer] of answers.entries()) {
    const key = keys[i] ?? '';
    if (answer.status !== 200) {
      failure = `${key}: ${messageOf(answer)}`;
      continue;
    }
    const keyStatus = answer.body as KeyStatus;
    found.push({ key, ...verdictOn(keyStatus, limitsOfKey(keyStatus, definitions)) });
  }
  found.sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  return { found, failure, isOfRulesAlone: top === undefined };
}

const MARKS: Readonly<Record<Verdict, string>> = {
  blocked: 'bad',
  denied: 'bad',
  counted: 'good',
  nothing: '',
  noRule: '',
};

function Results({ text }: { readonly text: string }): JSX.Element {
  const done = usePolled(text, () => search(text), AGAIN_MILLIS);
  if (done === undefined)
    return (
      <p class="quiet" role="status">
        Searching.
      </p>
    );
  const { found, failure, isOfRulesAlone } = done;
  return (
    <section class="panel" aria-label="Results">
      {failure !== '' && (
        <p class="message bad" role="alert">
          {failure}
        </p>
      )}
      <ScrollTable label={`Keys with ${text}`}>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Status</th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ key, verdict, words }) => (
            <tr key={key}>
              <th scope="row">
                <a class="key" href={keyHref(key)}>
                  {key}
                </a>
              </th>
              <td>
                <span class={`state ${MARKS[verdict]}`}>{words}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </ScrollTable>
      <p class="quiet">
        {isOfRulesAlone
          ? 'Keys of several values, such as endpoint=/a,user=ada, are found in the usage figures. These show keys to tokens only; in an open cluster, search on the machine of the node. '
          : `Keys of several values are found only if they are among the ${USAGE_TOP_MAX} granted most or the ${USAGE_TOP_MAX} denied most in this hour and the one before. `}
        {found.length >= KEYS_SOUGHT_MAX && `The first ${KEYS_SOUGHT_MAX} are shown. `}
        To show any other key, type the whole key.
      </p>
    </section>
  );
}

/** The search and, if the address names a key, its page. */
export function KeysView({ role }: { readonly role: Role }): JSX.Element {
  const { key, sought } = useRoute();
  const [visits, setVisits] = useState(0);
  const find = (typed: string): void => {
    const text = typed.trim();
    location.hash = isKeyText(text) ? keyHref(text) : viewHref('keys', text);
    // Searching for the same text again must read again.
    setVisits(visits + 1);
  };
  return (
    <>
      <Lookup
        key={key || sought}
        label="Key, or a value in it"
        example="ada"
        hint={HINT}
        value={key || sought}
        found={find}
      />
      {key !== '' && <KeyPage key={`${key} ${visits}`} name={key} role={role} />}
      {key === '' && sought === '' && (
        <p class="quiet">
          <a href={viewHref('usage')}>Usage</a> lists the keys that are denied and granted most.
        </p>
      )}
      {key === '' && sought !== '' && <Results key={visits} text={sought} />}
    </>
  );
}
