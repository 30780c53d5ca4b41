/** The rules in force, and the editor for others in their place. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { USAGE_MINUTES_MAX, type UsageReport } from '../api/usage.ts';
import type { RuleDefinition } from '../rules/rule-definition.ts';
import { isForUnmatched } from '../rules/unmatched.ts';
import { windowRuleId } from '../rules/window-id.ts';
import { ruleInWords, windowInWords } from '../rules/words.ts';
import { ScrollTable } from './cluster-tables.tsx';
import { RulesEditor } from './rules-editor.tsx';
import type { KnownRules } from './rules-text.ts';
import { ask, messageOf, type Role } from './session.ts';
import { counted, wholeNumber } from './words.ts';

/** Of a table; the editor shows all. */
const ROWS_MAX = 500;

/** What a rule in shadow would have done in the last day, of all its windows; empty for one that binds, or was not tried. */
function trialOf(rule: RuleDefinition, usage: UsageReport | undefined): string {
  if (!rule.shadow) return '';
  const windows = rule.windows.map((window) => windowRuleId(rule, window));
  const ids = isForUnmatched(rule) ? [rule.id] : windows;
  const counts = (usage?.rules ?? []).filter((each) => ids.includes(each.rule));
  const denied = counts.reduce((sum, { wouldDeny }) => sum + wouldDeny, 0);
  const all = counts.reduce((sum, { wouldAllow }) => sum + wouldAllow, denied);
  return `would have denied ${wholeNumber(denied)} of ${wholeNumber(all)} in the last day`;
}

function RuleTable({
  rules,
  usage,
}: {
  readonly rules: KnownRules;
  readonly usage: UsageReport | undefined;
}): JSX.Element {
  const { definitions } = rules;
  const all =
    definitions === undefined
      ? rules.rules.map((rule) => ({
          id: rule.id,
          words: windowInWords(rule),
          meter: rule.meter ?? 'slidingLog',
          trial: '',
        }))
      : definitions.map((rule) => ({
          id: rule.id,
          words: ruleInWords(rule),
          meter: isForUnmatched(rule) ? '' : rule.meter,
          trial: trialOf(rule, usage),
        }));
  const rest = all.length - ROWS_MAX;
  return (
    <ScrollTable
      label={`Version ${rules.version}: ${counted(all.length, 'rule')}${rest > 0 ? `, the first ${ROWS_MAX}` : ''}`}
    >
      <thead>
        <tr>
          <th scope="col">Rule</th>
          <th scope="col">Says</th>
          <th scope="col">Meter</th>
          <th scope="col">In shadow</th>
        </tr>
      </thead>
      <tbody>
        {all.slice(0, ROWS_MAX).map(({ id, words, meter, trial }) => (
          <tr key={id}>
            <th scope="row">{id}</th>
            <td>{words}</td>
            <td>{meter}</td>
            <td>{trial}</td>
          </tr>
        ))}
      </tbody>
    </ScrollTable>
  );
}

export function RulesView({
  role,
  versionInForce,
}: {
  readonly role: Role;
  /** As the node told last. */
  readonly versionInForce: number | null;
}): JSX.Element {
  const [rules, setRules] = useState<KnownRules>();
  const [usage, setUsage] = useState<UsageReport>();
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
    void ask(`/v1/usage?minutes=${USAGE_MINUTES_MAX}`).then((answer) => {
      if (!isAskedAnew && answer.status === 200) setUsage(answer.body as UsageReport);
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
        <RuleTable rules={rules} usage={usage} />
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
          applied={() => setApplied(applied + 1)}
          close={() => setEditing(false)}
        />
      )}
    </>
  );
}
