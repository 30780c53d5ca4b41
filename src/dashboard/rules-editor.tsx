/**
 * The editor of the rules: it reads what is written while it is written, tells every mistake with its place, or what would change,
 * and applies that only if the rules it compared with are still in force.
 */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { RuleChange } from '../rules/diff.ts';
import type { Mistake } from '../rules/mistakes.ts';
import { checkRules, type Checked, indexOfPlace, type KnownRules, textOfRules } from './rules-text.ts';
import { ask, messageOf, type Role } from './session.ts';
import { counted } from './words.ts';

/** After the last key: reading a long document takes a while. */
const CHECK_MILLIS = 250;
const WHY_NOT: Readonly<Record<Exclude<Role, 'admin'>, string>> = {
  open: 'This cluster is open, and lets no browser change it: apply the text with quorate rules apply, or make a token of role admin.',
  read: 'Applying needs a token of role admin.',
};

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

function Change({ change }: { readonly change: RuleChange }): JSX.Element {
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
          ? `Nothing differs from version ${inForce.version}.`
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

/** What was found in the text. */
function Found({
  checked,
  inForce,
  go,
}: {
  /** Undefined: it is not read yet. */
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

/** Others were applied while these were written: applying them now would take that back. */
function Overtaken({
  begunFrom,
  inForce,
  goOn,
  startOver,
}: {
  readonly begunFrom: number;
  readonly inForce: number;
  readonly goOn: () => void;
  /** Undefined: there are no words for the rules in force. */
  readonly startOver: (() => void) | undefined;
}): JSX.Element {
  return (
    <div role="alert">
      <p class="message warning">
        This text began from version {begunFrom}, and version {inForce} is in force by now: what differs
        includes what was changed meanwhile, and would take that back.
      </p>
      <p class="actions">
        <button onClick={goOn}>Go on with this text</button>
        {startOver !== undefined && <button onClick={startOver}>Start over from version {inForce}</button>}
      </p>
    </div>
  );
}

interface Applying {
  readonly state: 'no' | 'under way' | 'done' | 'failed';
  readonly words: string;
  /** That these are, once they are in force. */
  readonly version?: number;
}

async function applyRules(text: string, version: number): Promise<Applying> {
  const answer = await ask('/v1/rules', {
    method: 'PUT',
    yaml: text,
    ifMatch: `"${version}"`,
  });
  if (answer.status !== 200 && answer.status !== 202) return { state: 'failed', words: messageOf(answer) };
  const { version: now, pending } = answer.body as {
    readonly version: number;
    readonly pending: readonly number[];
  };
  const rest =
    pending.length === 0
      ? 'every partition decides by it'
      : `${counted(pending.length, 'partition')} will, with a leader`;
  return { state: 'done', words: `Version ${now} is in force: ${rest}.`, version: now };
}

function useChecked(text: string, inForce: KnownRules): Checked | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), CHECK_MILLIS);
    return () => clearTimeout(timer);
  }, [text]);
  const checked = useMemo(() => checkRules(settled, inForce.definitions), [settled, inForce]);
  return settled === text ? checked : undefined;
}

interface Draft {
  readonly text: string;
  /** The version that whoever writes has seen. */
  readonly begunFrom: number;
  readonly applying: Applying;
}

/** The text, and what became of it. */
function useDraft(
  inForce: KnownRules,
  applied: () => void,
): Draft & {
  readonly write: (text: string, begunFrom?: number) => void;
  readonly goOn: () => void;
  readonly apply: () => Promise<void>;
} {
  const [text, setText] = useState(() => textOfRules(inForce.definitions) ?? '');
  const [begunFrom, setBegunFrom] = useState(inForce.version);
  const [applying, setApplying] = useState<Applying>({ state: 'no', words: '' });
  return {
    text,
    begunFrom,
    applying,
    write(next, from = begunFrom) {
      setText(next);
      setBegunFrom(from);
      setApplying({ state: 'no', words: '' });
    },
    goOn: () => setBegunFrom(inForce.version),
    async apply() {
      setApplying({ state: 'under way', words: 'Applying: waiting for every partition.' });
      const outcome = await applyRules(text, begunFrom);
      setApplying(outcome);
      if (outcome.version !== undefined) setBegunFrom(outcome.version);
      applied();
    },
  };
}

export function RulesEditor({
  inForce,
  role,
  applied,
  close,
}: {
  readonly inForce: KnownRules;
  readonly role: Role;
  /** Told when others may be in force. */
  readonly applied: () => void;
  readonly close: () => void;
}): JSX.Element {
  const told = useMemo(() => textOfRules(inForce.definitions), [inForce]);
  const { text, begunFrom, applying, write, goOn, apply } = useDraft(inForce, applied);
  const area = useRef<HTMLTextAreaElement>(null);
  const checked = useChecked(text, inForce);
  const go = (mistake: Mistake): void => {
    const at = indexOfPlace(text, mistake);
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  const mayApply =
    role === 'admin' &&
    begunFrom === inForce.version &&
    checked?.kind === 'changes' &&
    checked.changes.length > 0 &&
    applying.state !== 'under way';
  return (
    <section class="panel editor" aria-labelledby="editor-title">
      <h2 id="editor-title">Edit</h2>
      {told === undefined && (
        <p class="message warning">
          Rules of nested descriptors are in force: paste the whole document that is to replace them.
        </p>
      )}
      <label for="rules-text">Document of rules</label>
      <textarea
        id="rules-text"
        ref={area}
        rows={18}
        spellcheck={false}
        aria-describedby="rules-found"
        value={text}
        onInput={({ currentTarget }) => write(currentTarget.value)}
      />
      {begunFrom < inForce.version && applying.state !== 'under way' && (
        <Overtaken
          begunFrom={begunFrom}
          inForce={inForce.version}
          goOn={goOn}
          startOver={told === undefined ? undefined : () => write(told, inForce.version)}
        />
      )}
      <Found checked={checked} inForce={inForce} go={go} />
      {applying.words !== '' && (
        <p class={`message ${applying.state === 'failed' ? 'bad' : 'good'}`} role="status">
          {applying.words}
        </p>
      )}
      {role !== 'admin' && <p class="quiet">{WHY_NOT[role]}</p>}
      <p class="actions">
        <button class="primary" disabled={!mayApply} onClick={() => void apply()}>
          Apply this difference
        </button>
        <button onClick={close}>Close the editor</button>
      </p>
    </section>
  );
}
