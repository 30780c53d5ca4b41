/** The text area of the rules editor, with line numbers and marks on the lines with mistakes. */
import type { JSX, RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';

const ROWS = 18;

/** Splits the text at marked lines only, so that a long text needs few elements and stays fast. */
function piecesOf(
  lines: readonly string[],
  marked: ReadonlySet<number>,
): readonly { text: string; isMarked: boolean }[] {
  const pieces: { text: string; isMarked: boolean }[] = [];
  let plain: string[] = [];
  const flush = (): void => {
    if (plain.length > 0) pieces.push({ text: `${plain.join('\n')}\n`, isMarked: false });
    plain = [];
  };
  for (const [i, line] of lines.entries()) {
    if (!marked.has(i + 1)) {
      plain.push(line);
      continue;
    }
    flush();
    pieces.push({ text: `${line}\n`, isMarked: true });
  }
  flush();
  return pieces;
}

function Backdrop({
  lines,
  marked,
  kind,
  layer,
}: {
  readonly lines: readonly string[];
  readonly marked: ReadonlySet<number>;
  readonly kind: 'numbers' | 'marks';
  readonly layer: RefObject<HTMLPreElement | null>;
}): JSX.Element {
  return (
    <pre class={kind} ref={layer} aria-hidden="true">
      {piecesOf(lines, marked).map(({ text, isMarked }, i) =>
        isMarked ? <mark key={i}>{text}</mark> : <span key={i}>{text}</span>,
      )}
    </pre>
  );
}

/** The text area above two layers, which show line numbers and marks. */
export function RulesArea({
  text,
  wrongLines,
  area,
  write,
}: {
  readonly text: string;
  /** Numbers of the lines with mistakes, from 1. */
  readonly wrongLines: ReadonlySet<number>;
  readonly area: RefObject<HTMLTextAreaElement | null>;
  readonly write: (text: string) => void;
}): JSX.Element {
  const numbers = useRef<HTMLPreElement>(null);
  const marks = useRef<HTMLPreElement>(null);
  const lines = useMemo(() => text.split('\n'), [text]);
  const lineNumbers = useMemo(
    () => lines.map((_, i) => (wrongLines.has(i + 1) ? `✗ ${i + 1}` : String(i + 1))),
    [lines, wrongLines],
  );
  /** Scrolls the layers to the same part of the text. */
  const follow = (): void => {
    const { scrollTop = 0, scrollLeft = 0 } = area.current ?? {};
    if (numbers.current !== null) numbers.current.scrollTop = scrollTop;
    if (marks.current !== null) Object.assign(marks.current, { scrollTop, scrollLeft });
  };
  useLayoutEffect(follow, [text, wrongLines]);
  return (
    <div class="code">
      <div class="code-numbers">
        <Backdrop kind="numbers" lines={lineNumbers} marked={wrongLines} layer={numbers} />
      </div>
      <div class="code-text">
        <Backdrop kind="marks" lines={lines} marked={wrongLines} layer={marks} />
        <textarea
          id="rules-text"
          ref={area}
          rows={ROWS}
          spellcheck={false}
          wrap="off"
          aria-describedby="rules-found"
          aria-invalid={wrongLines.size > 0}
          value={text}
          onScroll={follow}
          onInput={({ currentTarget }) => write(currentTarget.value)}
        />
      </div>
    </div>
  );
}
