/** How long a block lasts, as an operator says it and as it is shown. */
import type { JSX } from 'preact';
import { span } from './words.ts';

const MINUTE_MILLIS = 60_000;

/** As a body has it: nothing if the field is empty. The node checks its bounds. */
export function durationIn(minutes: string): { readonly durationMillis?: number } {
  return minutes === '' ? {} : { durationMillis: Number(minutes) * MINUTE_MILLIS };
}

/** What is left of it; nothing of a block without an end. Both are group time. */
export function endWords({
  blockedUntilMillis,
  decided,
}: {
  readonly blockedUntilMillis?: number;
  readonly decided: { readonly timeMillis: number };
}): string {
  return blockedUntilMillis === undefined
    ? ''
    : `, for ${span(Math.max(0, blockedUntilMillis - decided.timeMillis))} more`;
}

export function BlockMinutes({
  minutes,
  changed,
}: {
  readonly minutes: string;
  readonly changed: (minutes: string) => void;
}): JSX.Element {
  return (
    <label>
      For minutes; empty: until it is taken back
      <input
        type="text"
        inputMode="numeric"
        pattern="[0-9]+"
        value={minutes}
        onInput={({ currentTarget }) => changed(currentTarget.value)}
      />
    </label>
  );
}

/** As the fields of a form have it. */
export interface Block {
  readonly isBlocked: boolean;
  readonly minutes: string;
}

/** As the body of a customer has it: nothing where it stays as it is, with its end. */
export function blockIn({ isBlocked: blocked, minutes }: Block, wasBlocked: boolean): object {
  if (blocked === wasBlocked) return {};
  return { blocked, ...(blocked && durationIn(minutes)) };
}

export function BlockFields({
  block,
  wasBlocked,
  changed,
}: {
  readonly block: Block;
  readonly wasBlocked: boolean;
  readonly changed: (block: Block) => void;
}): JSX.Element {
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={block.isBlocked}
          onChange={({ currentTarget }) => changed({ ...block, isBlocked: currentTarget.checked })}
        />
        Blocked: deny everything
      </label>
      {block.isBlocked && !wasBlocked && (
        <BlockMinutes minutes={block.minutes} changed={(minutes) => changed({ ...block, minutes })} />
      )}
    </>
  );
}
