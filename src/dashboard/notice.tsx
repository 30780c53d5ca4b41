/**
 * Shows the verdict on the cluster: a sentence, what to do, and the commands for it. Each severity has its own word and
 * shape.
 */
import type { JSX } from 'preact';
import type { Severity, Verdict } from './severity.ts';

const LABELS: Readonly<Record<Severity, string>> = {
  well: 'Healthy',
  attention: 'Attention',
  nodeDown: 'Node down',
  noLeader: 'Some denied',
  outage: 'Outage',
};
const CLASSES: Readonly<Record<Severity, string>> = {
  well: 'good',
  attention: 'warning',
  nodeDown: 'warning',
  noLeader: 'bad',
  outage: 'outage',
};

/** The banner at the top of a page. */
export function Notice({ verdict }: { readonly verdict: Verdict }): JSX.Element {
  const { severity, what, action, commands, elsewhere } = verdict;
  const isUrgent = severity === 'outage' || severity === 'noLeader';
  return (
    <div
      class={`banner notice ${CLASSES[severity]}`}
      id="summary"
      role={isUrgent ? 'alert' : 'status'}
      data-severity={severity}
      // Screen readers ignore a changed role, so another severity makes a new element.
      key={severity}
    >
      <p>
        <span class={`mark ${CLASSES[severity]}`}>{LABELS[severity]}</span> {what}
      </p>
      {action !== '' && <p class="action">{action}</p>}
      {commands.map((command) => (
        <pre key={command}>
          <code>{command}</code>
        </pre>
      ))}
      {elsewhere.length > 0 && (
        <p class="elsewhere">
          {elsewhere.map(({ id, http }) => (
            <a key={id} href={`${location.protocol}//${http ?? ''}/${location.hash}`}>
              Open node {id}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}
