/** Asks the author what to do if somebody else applied rules meanwhile: applying this text would undo theirs. */
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { diffRules } from '../rules/diff.ts';
import { carriedOver } from './line-diff.ts';
import type { Draft } from './rules-draft.ts';
import { Change } from './rules-findings.tsx';
import { type KnownRules, textInForce } from './rules-text.ts';

/** Offers to merge the changes, to start over, or to overwrite. */
export function Overtaken({
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
