/** The page of one key: its verdict, the limits that count it, its recent denials, and the actions on it. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { descriptorsIn, GLOBAL_KEY } from '../api/key-text.ts';
import { USAGE_TOP_MAX, type UsageReport } from '../api/usage.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { ruleInWords } from '../rules/words.ts';
import { KeyActions } from './key-actions.tsx';
import {
  denialsInWords,
  definitionsOf,
  isFull,
  type KeyLimit,
  type KeyLimits,
  type KeyStatus,
  limitsOfKey,
  verdictOn,
} from './key-status.ts';
import { CUSTOMER } from './key-search.ts';
import { usePolled, readUsage } from './polled.ts';
import { viewHref } from './router.ts';
import type { KnownRules } from './rules-text.ts';
import { type Answer, ask, messageOf, type Role } from './session.ts';
import { Timeline, TimelineLegend } from './timeline.tsx';
import { clockTime, nodesInWords } from './words.ts';

const AGAIN_MILLIS = 2_000;
const DENIALS_AGAIN_MILLIS = 10_000;
const HOUR_MINUTES = 60;

interface Read {
  readonly atMillis: number;
  readonly failure: string;
  readonly keyStatus?: KeyStatus;
  readonly limits?: KeyLimits;
}

/** The customer, if the key names a customer and nothing else. */
function customerOf(key: string): string | undefined {
  if (key === GLOBAL_KEY) return undefined;
  const said = descriptorsIn(key);
  return said.size === 1 ? said.get(CUSTOMER) : undefined;
}

async function tierOf(customer: string | undefined): Promise<string | undefined> {
  if (customer === undefined) return undefined;
  const { status, body } = await ask(`/v1/customers/${encodeURIComponent(customer)}`);
  return status === 200 ? (body as { readonly tier?: string }).tier : undefined;
}

/** Reads the status of one key. It rereads the rules only if the status was computed with another version. */
class KeyReader {
  readonly #key: string;
  #rules: { readonly version: number; readonly definitions: readonly RuleDefinition[] } | undefined;

  constructor(key: string) {
    this.#key = key;
  }

  async read(): Promise<Read> {
    const [answer, tier] = await Promise.all([
      ask(`/v1/keys/${encodeURIComponent(this.#key)}`),
      tierOf(customerOf(this.#key)),
    ]);
    const atMillis = Date.now();
    if (answer.status !== 200) return { atMillis, failure: messageOf(answer) };
    const keyStatus = answer.body as KeyStatus;
    if (this.#rules?.version !== keyStatus.rulesVersion) {
      const rules = await ask('/v1/rules');
      if (rules.status !== 200) return { atMillis, failure: messageOf(rules) };
      const known = rules.body as KnownRules;
      this.#rules = { version: known.version, definitions: definitionsOf(known) };
    }
    return {
      atMillis,
      failure: '',
      keyStatus,
      limits: limitsOfKey(keyStatus, this.#rules.definitions, tier),
    };
  }
}

/** The verdict as a sentence, with the time of day at which it ends. */
function Verdict({
  keyStatus,
  limits,
  atMillis,
}: {
  readonly keyStatus: KeyStatus;
  readonly limits: KeyLimits;
  readonly atMillis: number;
}): JSX.Element {
  const { verdict, words } = verdictOn(keyStatus, limits);
  const { blockedUntilMillis, decided } = keyStatus;
  const blockMillis = blockedUntilMillis === undefined ? undefined : blockedUntilMillis - decided.timeMillis;
  const [worst] = limits.counting;
  const waitMillis =
    verdict === 'blocked' ? blockMillis : verdict === 'denied' ? worst?.retryAfterMillis : undefined;
  const until = waitMillis === undefined ? '' : `, until ${clockTime(atMillis + waitMillis)}`;
  const isBad = verdict === 'blocked' || verdict === 'denied';
  const sentence = `${words.charAt(0).toUpperCase()}${words.slice(1)}${until}.`;
  return (
    <p class={`message ${isBad ? 'bad' : 'good'}`} id="verdict">
      {isBad ? <strong>{sentence}</strong> : sentence}
    </p>
  );
}

function Windows({
  title,
  limits,
}: {
  readonly title: string;
  readonly limits: readonly KeyLimit[];
}): JSX.Element | null {
  if (limits.length === 0) return null;
  const conditions = new Map(limits.filter(({ where }) => where !== '').map((one) => [one.rule, one.where]));
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Timeline limits={limits} />
      {conditions.size > 0 && (
        <ul class="quiet">
          {[...conditions].map(([rule, where]) => (
            <li key={rule}>
              {rule} counts requests where {where}.
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Limits({ limits: { counting, others, unlimited } }: { readonly limits: KeyLimits }): JSX.Element {
  const shadow = counting.filter(({ isShadow }) => isShadow);
  const full = shadow.filter(isFull);
  return (
    <>
      {unlimited.map((rule) => (
        <p key={rule.id} class="message">
          Rule {rule.id} gives it no limit: {ruleInWords(rule)}.
        </p>
      ))}
      <Windows title="Limits that count it" limits={counting.filter(({ isShadow }) => !isShadow)} />
      <Windows title="In shadow: what these would do" limits={shadow} />
      <TimelineLegend limits={counting} />
      {full.length > 0 && (
        <p class="message warning">
          If enforced, {full.map(({ rule }) => rule).join(', ')} would deny the next request.
        </p>
      )}
      {counting.length === 0 && unlimited.length === 0 && (
        <p class="quiet">
          No rule in force counts this key alone. The page Rules shows what each rule counts.
        </p>
      )}
      {others.length > 0 && (
        <details>
          <summary>Limits that have counted nothing for it ({others.length})</summary>
          <ul class="findings">
            {others.map(({ rule, windowMillis, where }) => (
              <li key={`${rule}:${windowMillis}`}>
                {rule}
                {where !== '' && `: counts requests where ${where}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Denials({ name }: { readonly name: string }): JSX.Element {
  const read = usePolled(
    name,
    () => readUsage({ minutes: HOUR_MINUTES, top: USAGE_TOP_MAX }),
    DENIALS_AGAIN_MILLIS,
  );
  const report: UsageReport | undefined = read?.report;
  return (
    <section class="panel" aria-labelledby="denials-title">
      <h2 id="denials-title">Last denials</h2>
      {read === undefined && <p class="quiet">Reading.</p>}
      {read !== undefined && read.failure !== '' && <p class="message bad">{read.failure}</p>}
      {report !== undefined && (
        <>
          <ul class="findings">
            {denialsInWords(name, report).map((words) => (
              <li key={words}>{words}</li>
            ))}
          </ul>
          <p class="quiet">
            Nodes count denials of a key in this hour and the one before; they do not keep the time of each.
            {report.silent.length > 0 && ` Figures of ${nodesInWords(report.silent)} are missing.`}
          </p>
        </>
      )}
    </section>
  );
}

function problemIn(answer: Answer): string {
  return answer.status === 200 ? '' : messageOf(answer);
}

/** The whole page of a key. */
export function KeyPage({ name, role }: { readonly name: string; readonly role: Role }): JSX.Element {
  const [changes, setChanges] = useState(0);
  const [reader] = useState(() => new KeyReader(name));
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    title.current?.focus();
  }, []);
  const read = usePolled(String(changes), () => reader.read(), AGAIN_MILLIS);
  const last = useRef<Read | undefined>(undefined);
  if (read?.keyStatus !== undefined) last.current = read;
  const { keyStatus, limits, atMillis = 0 } = read?.keyStatus === undefined ? (last.current ?? {}) : read;
  const customer = customerOf(name);
  const change = async (path: string, asked: Parameters<typeof ask>[1]): Promise<string> => {
    const answer = await ask(path, asked);
    setChanges((before) => before + 1);
    return problemIn(answer);
  };
  return (
    <>
      <section class="panel" aria-labelledby="key-title">
        <h2 id="key-title" class="key" ref={title} tabIndex={-1}>
          {name}
        </h2>
        {read !== undefined && read.failure !== '' && (
          <p class="message bad" role="alert">
            {read.failure}
          </p>
        )}
        {keyStatus === undefined || limits === undefined ? (
          read === undefined && <p class="quiet">Reading.</p>
        ) : (
          <>
            <Verdict keyStatus={keyStatus} limits={limits} atMillis={atMillis} />
            <Limits limits={limits} />
            <p class="quiet">
              Reported by the leader of the key at {clockTime(atMillis)}, for a request of cost 1, with
              version {keyStatus.rulesVersion} of the rules. Updated every two seconds.
            </p>
          </>
        )}
        {customer !== undefined && (
          <p>
            <a href={viewHref('customers', customer)}>Tier and limits of customer {customer}</a>
          </p>
        )}
      </section>
      <KeyActions name={name} role={role} isBlocked={keyStatus?.blocked === true} change={change} />
      <Denials name={name} />
    </>
  );
}
