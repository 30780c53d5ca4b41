/** Form fields for blocking a key or a customer, and how the end of a block is shown. */
import type { JSX } from 'preact';
import { span } from './words.ts';

const MINUTE_MILLIS = 60_000;

/** The duration for a request body; left out if the field is empty. The node checks its bounds. */
export function durationIn(minutes: string): { readonly durationMillis?: number } {
  return minutes === '' ? {} : { durationMillis: Number(minutes) * MINUTE_MILLIS };
}

/** Such as `, for 3 min more`; empty if the block has no end. Both times are on the clock of the partition. */
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

/** A text field for the length of a block. */
export function BlockMinutes({
  minutes,
  changed,
}: {
  readonly minutes: string;
  readonly changed: (minutes: string) => void;
}): JSX.Element {
  return (
    <label>
      Minutes (empty: until it is unblocked)
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

/** State of the block fields. */
export interface Block {
  readonly isBlocked: boolean;
  readonly minutes: string;
}

/** The block for the body of a customer. Left out if nothing changed, so that the end of a block stays as it is. */
export function blockIn({ isBlocked: blocked, minutes }: Block, wasBlocked: boolean): object {
  if (blocked === wasBlocked) return {};
  return { blocked, ...(blocked && durationIn(minutes)) };
}

/** A checkbox for the block and, for a new block, its length. */
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
