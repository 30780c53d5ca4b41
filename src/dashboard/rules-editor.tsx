/**
 * The rules editor. It checks the text while somebody types, marks mistakes at their lines, and shows what would
 * change. It applies the text only if the rules it was compared with are still in force.
 */
import type { JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { diffRules } from '../rules/diff.ts';
import { carriedOver } from './line-diff.ts';
import { type Draft, useChecked, useDraft } from './rules-draft.ts';
import { Change, Found, TextDifference } from './rules-findings.tsx';
import { type KnownRules, textInForce, type Checked, indexOfPlace, type TextInForce } from './rules-text.ts';
import type { Mistake } from '../rules/mistakes.ts';
import { RulesArea } from './rules-area.tsx';
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

/**
 * Asks the author what to do if somebody else applied rules meanwhile, because applying this text would undo theirs:
 * merge the changes, start over, or overwrite.
 */
function Overtaken({
  draft: { text, begun, seen },
  inForce,
}: {
  readonly draft: Draft;
  readonly inForce: KnownRules;
}): JSX.Element {
  const theirs = useMemo(() => textInForce(inForce), [inForce]);
  const changes = useMemo(
    () => diffRules(begun.definitions ?? [], inForce.definitions ?? []),
    [begun, inForce],
  );
  const both = useMemo(
    () => carriedOver({ before: textInForce(begun).text, theirs: theirs.text, mine: text }),
    [begun, theirs, text],
  );
  return (
    <div role="alert">
      <p class="message warning">
        Somebody else applied version {inForce.version} while this text was written, which began from version{' '}
        {begun.version}. Applied as it is, this text would undo these changes:
      </p>
      <ul class="findings">
        {changes.map((change) => (
          <Change key={change.words} change={change} />
        ))}
        {changes.length === 0 && <li>no rule, but the text</li>}
      </ul>
      <p class="actions">
        {both !== undefined && (
          <button class="primary" onClick={() => seen(inForce, both)}>
            Take that change into this text
          </button>
        )}
        {theirs.origin !== 'none' && (
          <button onClick={() => seen(inForce, theirs.text)}>
            Start over from version {inForce.version}
          </button>
        )}
        <button class="danger" onClick={() => seen(inForce, text)}>
          Keep this text, and take that change back
        </button>
      </p>
      {both === undefined && (
        <p class="quiet">Both changed the same lines: there is no text with both changes to offer.</p>
      )}
    </div>
  );
}
