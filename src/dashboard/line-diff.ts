/** Compares two texts line by line, and applies the difference of two texts to a third one. Pure. */
import { applyPatch, structuredPatch } from 'diff';

/** Unchanged lines shown around a change. */
const SHOWN_AROUND = 2;
/** Unchanged lines that must surround a change before it is applied to another text. */
const CERTAIN_AROUND = 1;
/** Comparing texts with more edits takes too long while somebody types. */
const EDITS_MAX = 600;
/** The maximum number of lines of a difference that are shown. */
export const DIFF_LINES_MAX = 500;

/** One line of a difference. `skipped` stands for unchanged lines that are left out. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed' | 'skipped';
  /** Line number: in the old text for `removed`, otherwise in the new text; 0 for `skipped`. */
  readonly line: number;
  readonly text: string;
}

/** The difference of two texts. Empty if they are equal; undefined if they differ too much to compare. */
export function lineDiff(before: string, after: string): readonly DiffLine[] | undefined {
  const hunks = hunksOf(before, after, SHOWN_AROUND);
  if (hunks === undefined) return undefined;
  const lines: DiffLine[] = [];
  for (const { oldStart, newStart, lines: texts } of hunks) {
    if (newStart > 1) lines.push({ kind: 'skipped', line: 0, text: '' });
    let old = oldStart;
    let now = newStart;
    for (const text of texts) {
      const rest = text.slice(1);
      if (text.startsWith('-')) lines.push({ kind: 'removed', line: old++, text: rest });
      else if (text.startsWith('+')) lines.push({ kind: 'added', line: now++, text: rest });
      else if (text.startsWith(' ')) {
        lines.push({ kind: 'same', line: now++, text: rest });
        old += 1;
      }
    }
  }
  return lines;
}

/** Applies the changes from `before` to `theirs` to `mine`. Undefined if `mine` changed the same lines. */
export function carriedOver({
  before,
  theirs,
  mine,
}: {
  readonly before: string;
  readonly theirs: string;
  readonly mine: string;
}): string | undefined {
  const hunks = hunksOf(before, theirs, CERTAIN_AROUND);
  if (hunks === undefined) return undefined;
  const patch = { oldFileName: '', newFileName: '', oldHeader: '', newHeader: '', hunks: [...hunks] };
  const carried = applyPatch(mine, patch);
  return carried === false ? undefined : carried;
}

type Hunks = NonNullable<ReturnType<typeof structuredPatch>>['hunks'];

function hunksOf(before: string, after: string, context: number): Hunks | undefined {
  const options = { context, maxEditLength: EDITS_MAX };
  return structuredPatch('', '', before, after, undefined, undefined, options)?.hunks;
}
