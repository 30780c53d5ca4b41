/**
 * Shows the result of checking a rules text: its mistakes with their places, or the changes it makes, by rule and by
 * line.
 */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RuleChange } from '../rules/diff.ts';
import type { Mistake } from '../rules/mistakes.ts';
import { DIFF_LINES_MAX, type DiffLine, lineDiff } from './line-diff.ts';
import type { Checked, KnownRules } from './rules-text.ts';
import { counted } from './words.ts';

function Mistakes({
  mistakes,
  isComplete,
  go,
}: {
  readonly mistakes: readonly Mistake[];
  readonly isComplete: boolean;
  readonly go: (mistake: Mistake) => void;
}): JSX.Element {
  return (
    <>
      <p class="message bad">
        {counted(mistakes.length, 'mistake')}
        {isComplete ? '' : ', and perhaps more behind them'}
      </p>
      <ul class="findings">
        {mistakes.map((mistake) => (
          <li key={`${mistake.line}:${mistake.column}:${mistake.message}`}>
            <button class="link" onClick={() => go(mistake)}>
              line {mistake.line}, column {mistake.column}
            </button>{' '}
            {mistake.message}
          </li>
        ))}
      </ul>
    </>
  );
}

/** One changed rule, with its changed fields. */
export function Change({ change }: { readonly change: RuleChange }): JSX.Element {
  const fields = change.kind === 'changed' ? change.fields : [];
  return (
    <li class={change.kind}>
      <span class="mark">{change.kind}</span> {change.words}
      {fields.length > 0 && (
        <ul>
          {fields.map(({ field, before, after, binds }) => (
            <li key={field}>
              {field}: <del>{before}</del> <span aria-hidden="true">→</span> <ins>{after}</ins> ({binds})
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Difference({
  checked,
  inForce,
}: {
  readonly checked: Extract<Checked, { kind: 'changes' }>;
  readonly inForce: KnownRules;
}): JSX.Element {
  const { changes, notes } = checked;
  const replaced = inForce.definitions === undefined ? inForce.rules.map(({ id }) => id) : [];
  return (
    <>
      <p class="message">
        {changes.length === 0
          ? `No rule differs from version ${inForce.version}.`
          : `${counted(changes.length, 'change')} against version ${inForce.version}:`}
      </p>
      {replaced.length > 0 && (
        <p class="message warning">
          The rules in force did not come as a document: {counted(replaced.length, 'rule')} would go (
          {replaced.slice(0, 10).join(', ')}).
        </p>
      )}
      <ul class="findings">
        {changes.map((change) => (
          <Change key={change.words} change={change} />
        ))}
        {notes.map(({ line, message }) => (
          <li key={`${line}:${message}`}>
            <span class="mark">note</span> line {line}: {message}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The mistakes or the changes in the text. */
export function Found({
  checked,
  inForce,
  go,
}: {
  /** Undefined while the text is being checked. */
  readonly checked: Checked | undefined;
  readonly inForce: KnownRules;
  readonly go: (mistake: Mistake) => void;
}): JSX.Element {
  return (
    <div id="rules-found" class="found" aria-live="polite">
      {checked === undefined && <p class="message">Reading.</p>}
      {checked?.kind === 'mistakes' && <Mistakes {...checked} go={go} />}
      {checked?.kind === 'changes' && <Difference checked={checked} inForce={inForce} />}
    </div>
  );
}

const SIGNS: Readonly<Record<DiffLine['kind'], string>> = {
  added: '+',
  removed: '−',
  same: ' ',
  skipped: '⋯',
};
const SPOKEN: Readonly<Record<DiffLine['kind'], string>> = {
  added: 'added: ',
  removed: 'removed: ',
  same: '',
  skipped: 'lines that stay as they are',
};

function Line({ line: { kind, line, text } }: { readonly line: DiffLine }): JSX.Element {
  return (
    <li class={kind}>
      <span class="line-number">{line === 0 ? '' : line}</span>
      <span class="sign" aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <span class="hidden">{SPOKEN[kind]}</span>
      <code>{text}</code>
    </li>
  );
}

/** The difference from the text in force, line by line, including comments. */
export function TextDifference({
  before,
  after,
}: {
  readonly before: string;
  readonly after: string;
}): JSX.Element | null {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  if (lines?.length === 0) return null;
  if (lines === undefined) return <p class="quiet">The texts differ too much to be compared line by line.</p>;
  return (
    <section aria-label="Line by line">
      <h3>Line by line</h3>
      <ol class="diff" tabIndex={0} aria-label="Lines that differ">
        {lines.slice(0, DIFF_LINES_MAX).map((line, i) => (
          <Line key={i} line={line} />
        ))}
      </ol>
      {lines.length > DIFF_LINES_MAX && <p class="quiet">The first {DIFF_LINES_MAX} lines of it.</p>}
    </section>
  );
}
