/** What differs between two texts, line by line, and the difference of two texts carried over to a third. Pure. */
import { applyPatch, structuredPatch } from 'diff';

/** Lines around a change that are shown with it. */
const SHOWN_AROUND = 2;
/** Lines that must be as they were for a change to be carried over. */
const CERTAIN_AROUND = 1;
/** Texts that differ by more lines take too long to compare while somebody types. */
const EDITS_MAX = 600;
/** Of a difference that is shown. */
export const DIFF_LINES_MAX = 500;

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed' | 'skipped';
  /** Its number in the text that it is of; of `same` in the new one, of `skipped` 0. */
  readonly line: number;
  readonly text: string;
}

/** Empty: they are equal. Undefined: they differ too much to be compared line by line. */
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

/** `mine` with what changed from `before` to `theirs`. Undefined: both changed the same place. */
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
