/** State of the rules editor: the text, the version it started from, and the result of applying it. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { checkRules, type Checked, type KnownRules, textInForce } from './rules-text.ts';
import { ask, messageOf } from './session.ts';
import { counted } from './words.ts';

/** Pause after the last keystroke before the text is checked: checking a long document takes a while. */
const CHECK_MILLIS = 250;

/** Progress of applying the text, with a sentence for the operator. */
export interface Applying {
  readonly state: 'no' | 'under way' | 'done' | 'failed';
  readonly words: string;
}

/** The rules that a text started from. */
export type Begun = Pick<KnownRules, 'version' | 'document' | 'definitions'>;

/** The text under edit and the actions on it. */
export interface Draft {
  readonly text: string;
  /** The latest rules that the author has seen. Applying fails if others are in force. */
  readonly begun: Begun;
  readonly applying: Applying;
  readonly write: (text: string) => void;
  /** Records that the author has seen newer rules. @param text the text to go on with */
  readonly seen: (begun: Begun, text: string) => void;
  /** Applies the text. @param checked result of checking `text` */
  readonly apply: (checked: Checked) => Promise<void>;
}

const NOT_APPLYING: Applying = { state: 'no', words: '' };

/** Applies a document. @param version must still be in force; otherwise the node refuses */
async function applyRules(text: string, version: number): Promise<Applying & { readonly version?: number }> {
  const answer = await ask('/v1/rules', { method: 'PUT', yaml: text, ifMatch: `"${version}"` });
  if (answer.status !== 200 && answer.status !== 202) return { state: 'failed', words: messageOf(answer) };
  const { version: now, pending } = answer.body as {
    readonly version: number;
    readonly pending: readonly number[];
  };
  const rest =
    pending.length === 0
      ? 'every partition uses it'
      : `${counted(pending.length, 'partition')} will use it after electing a leader`;
  return { state: 'done', words: `Version ${now} is in force: ${rest}.`, version: now };
}

/** Hook: the state of one editor. @param applied called when other rules may be in force */
export function useDraft(inForce: KnownRules, applied: () => void): Draft {
  const [text, setText] = useState(() => textInForce(inForce).text);
  const [begun, setBegun] = useState<Begun>(inForce);
  const [applying, setApplying] = useState<Applying>(NOT_APPLYING);
  return {
    text,
    begun,
    applying,
    write(next) {
      setText(next);
      setApplying(NOT_APPLYING);
    },
    seen(next, changed) {
      setBegun(next);
      setText(changed);
      setApplying(NOT_APPLYING);
    },
    async apply(checked) {
      setApplying({ state: 'under way', words: 'Applying: waiting for every partition.' });
      const { version, ...outcome } = await applyRules(text, begun.version);
      setApplying(outcome);
      if (version !== undefined && checked.kind === 'changes')
        setBegun({ version, document: text, definitions: checked.definitions });
      applied();
    },
  };
}

/** Hook: the result of checking the text; undefined until shortly after the last keystroke. */
export function useChecked(text: string, inForce: KnownRules): Checked | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), CHECK_MILLIS);
    return () => clearTimeout(timer);
  }, [text]);
  const checked = useMemo(() => checkRules(settled, inForce.definitions), [settled, inForce]);
  return settled === text ? checked : undefined;
}
