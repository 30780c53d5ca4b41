/** The view of the rules: those in force with their effect, and the editor. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { USAGE_TOP_MAX } from '../api/usage.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { definitionsOf, type KeyStatus } from './key-status.ts';
import { usePolled, readUsage, type UsageRead } from './polled.ts';
import { RulesEditor } from './rules-editor.tsx';
import { RulesTable } from './rules-table.tsx';
import type { KnownRules } from './rules-text.ts';
import { keysToAsk, KEYS_ASKED_MAX, type Nearest, nearestOf } from './rules-usage.ts';
import { ask, messageOf, type Role } from './session.ts';
import { SPANS, SpanChoice } from './range.tsx';
import { nodesInWords } from './words.ts';

const AGAIN_MILLIS = 10_000;

interface RulesUsage extends UsageRead {
  readonly nearest: ReadonlyMap<string, Nearest>;
}

async function readRulesUsage(minutes: number, definitions: readonly RuleDefinition[]): Promise<RulesUsage> {
  const read = await readUsage({ minutes, top: USAGE_TOP_MAX });
  const keys = read.report === undefined ? [] : keysToAsk(read.report);
  const answers = await Promise.all(keys.map((key) => ask(`/v1/keys/${encodeURIComponent(key)}`)));
  const keyStatuses = answers.filter(({ status }) => status === 200).map(({ body }) => body as KeyStatus);
  return { ...read, nearest: nearestOf(keyStatuses, definitions) };
}

function InForce({ rules }: { readonly rules: KnownRules }): JSX.Element {
  const [minutes, setMinutes] = useState<number>(SPANS[0].minutes);
  const definitions = useMemo(() => definitionsOf(rules), [rules]);
  const what = `${rules.version} ${minutes}`;
  const usage = usePolled(what, () => readRulesUsage(minutes, definitions), AGAIN_MILLIS);
  const silent = usage?.report?.silent ?? [];
  return (
    <>
      {usage !== undefined && usage.failure !== '' && <p class="message bad">{usage.failure}</p>}
      <SpanChoice minutes={minutes} changed={setMinutes} />
      <RulesTable
        version={rules.version}
        definitions={definitions}
        usage={usage?.report}
        nearest={usage?.nearest ?? new Map()}
      />
      <p class="quiet">
        Each answer counts for the rule that decided it. A shadow rule counts the requests that all other
        rules let through.
        {usage?.report !== undefined && usage.report.top === undefined
          ? ' Keys near to their limit are shown to tokens only; in an open cluster, ask on the machine of the node.'
          : ` The nearest key is found among ${KEYS_ASKED_MAX} keys that were denied or granted most in this hour and the one before.`}
        {silent.length > 0 && ` Figures of ${nodesInWords(silent)} are missing.`}
      </p>
    </>
  );
}

/** The rules in force and, while editing, the editor. */
export function RulesView({
  role,
  versionInForce,
}: {
  readonly role: Role;
  /** As the node last reported. */
  readonly versionInForce: number | null;
}): JSX.Element {
  const [rules, setRules] = useState<KnownRules>();
  const [failure, setFailure] = useState('');
  const [isEditing, setEditing] = useState(false);
  const [applied, setApplied] = useState(0);
  useEffect(() => {
    let isAskedAnew = false;
    void ask('/v1/rules').then((answer) => {
      if (isAskedAnew) return;
      setFailure(answer.status === 200 ? '' : messageOf(answer));
      if (answer.status === 200) setRules(answer.body as KnownRules);
    });
    return () => {
      isAskedAnew = true;
    };
  }, [versionInForce, applied]);
  if (rules === undefined)
    return (
      <p class="quiet" role="status">
        {failure === '' ? 'Reading the rules.' : failure}
      </p>
    );
  return (
    <>
      <section class="panel" aria-labelledby="rules-title">
        <h2 id="rules-title">In force</h2>
        {failure !== '' && <p class="message bad">{failure}</p>}
        <InForce rules={rules} />
        {!isEditing && (
          <button class="primary" onClick={() => setEditing(true)}>
            Edit the rules
          </button>
        )}
      </section>
      {isEditing && (
        <RulesEditor
          inForce={rules}
          role={role}
          applied={() => setApplied((before) => before + 1)}
          close={() => setEditing(false)}
        />
      )}
    </>
  );
}
