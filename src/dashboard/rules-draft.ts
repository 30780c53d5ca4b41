/** A text of rules that somebody writes: which rules in force it began from, what it says, and what became of applying it. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { checkRules, type Checked, type KnownRules, textInForce } from './rules-text.ts';
import { ask, messageOf } from './session.ts';
import { counted } from './words.ts';

/** After the last key: reading a long document takes a while. */
const CHECK_MILLIS = 250;

export interface Applying {
  readonly state: 'no' | 'under way' | 'done' | 'failed';
  readonly words: string;
}

/** Rules that were in force, as far as a text is compared with them. */
export type Begun = Pick<KnownRules, 'version' | 'document' | 'definitions'>;

export interface Draft {
  readonly text: string;
  /** The rules that whoever writes has seen. */
  readonly begun: Begun;
  readonly applying: Applying;
  readonly write: (text: string) => void;
  /** What was applied meanwhile has been seen. @param text with it, or without */
  readonly seen: (begun: Begun, text: string) => void;
  /** @param checked what `text` says */
  readonly apply: (checked: Checked) => Promise<void>;
}

const NOT_APPLYING: Applying = { state: 'no', words: '' };

/** @param version that must be in force still; another one is refused by the node */
async function applyRules(text: string, version: number): Promise<Applying & { readonly version?: number }> {
  const answer = await ask('/v1/rules', { method: 'PUT', yaml: text, ifMatch: `"${version}"` });
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

/** @param applied told when others may be in force */
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

/** Undefined while it is read: shortly after the last key. */
export function useChecked(text: string, inForce: KnownRules): Checked | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), CHECK_MILLIS);
    return () => clearTimeout(timer);
  }, [text]);
  const checked = useMemo(() => checkRules(settled, inForce.definitions), [settled, inForce]);
  return settled === text ? checked : undefined;
}
