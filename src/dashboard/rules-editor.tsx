/**
 * The rules editor. It checks the text while somebody types, marks mistakes at their lines, and shows what would
 * change. It applies the text only if the rules it was compared with are still in force.
 */
import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import type { Mistake } from '../rules/mistakes.ts';
import { RulesArea } from './rules-area.tsx';
import { useChecked, useDraft } from './rules-draft.ts';
import { Found, TextDifference } from './rules-findings.tsx';
import { Overtaken } from './rules-overtaken.tsx';
import { type Checked, indexOfPlace, type KnownRules, textInForce, type TextInForce } from './rules-text.ts';
import type { Role } from './session.ts';

const WHY_NOT: Readonly<Record<Exclude<Role, 'admin'>, string>> = {
  open: 'This cluster is open, and lets no browser change it: apply the text with quorate rules apply, or create a token of role admin.',
  read: 'Applying needs a token of role admin.',
};
const ORIGINS: Readonly<Record<TextInForce['origin'], string>> = {
  author: '',
  written: 'This text was generated from the rules in force, because the original document is not kept.',
  example: '',
  none: 'The rules in force use nested descriptors, and their document is not kept. Paste the whole document that replaces them.',
};
const NO_LINES: ReadonlySet<number> = new Set();

function wrongLinesOf(checked: Checked | undefined): ReadonlySet<number> {
  return checked?.kind === 'mistakes' ? new Set(checked.mistakes.map(({ line }) => line)) : NO_LINES;
}

/** The editor for one draft. */
export function RulesEditor({
  inForce,
  role,
  applied,
  close,
}: {
  readonly inForce: KnownRules;
  readonly role: Role;
  /** Called when other rules may be in force. */
  readonly applied: () => void;
  readonly close: () => void;
}): JSX.Element {
  const before = useMemo(() => textInForce(inForce), [inForce]);
  const draft = useDraft(inForce, applied);
  const { text, begun, applying } = draft;
  const area = useRef<HTMLTextAreaElement>(null);
  const checked = useChecked(text, inForce);
  const wrongLines = useMemo(() => wrongLinesOf(checked), [checked]);
  const go = (mistake: Mistake): void => {
    const at = indexOfPlace(text, mistake);
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  const isApplying = applying.state === 'under way';
  const mayApply =
    role === 'admin' &&
    begun.version === inForce.version &&
    checked?.kind === 'changes' &&
    (checked.changes.length > 0 || text !== before.text) &&
    !isApplying;
  return (
    <section class="panel editor" aria-labelledby="editor-title">
      <h2 id="editor-title">Edit</h2>
      {ORIGINS[before.origin] !== '' && <p class="message warning">{ORIGINS[before.origin]}</p>}
      <label for="rules-text">Document of rules</label>
      <RulesArea text={text} wrongLines={wrongLines} area={area} write={draft.write} />
      {begun.version < inForce.version && !isApplying && <Overtaken draft={draft} inForce={inForce} />}
      <Found checked={checked} inForce={inForce} go={go} />
      {checked?.kind === 'changes' && before.origin !== 'example' && (
        <TextDifference before={before.text} after={text} />
      )}
      {applying.words !== '' && (
        <p class={`message ${applying.state === 'failed' ? 'bad' : 'good'}`} role="status">
          {applying.words}
        </p>
      )}
      {role !== 'admin' && <p class="quiet">{WHY_NOT[role]}</p>}
      <p class="actions">
        <button
          class="primary"
          disabled={!mayApply}
          onClick={() => checked !== undefined && void draft.apply(checked)}
        >
          Apply this difference
        </button>
        <button onClick={close}>Close the editor</button>
      </p>
    </section>
  );
}
