/** A search field with a button. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

/** Calls `found` with the text when the form is sent. */
export function Lookup({
  label,
  example,
  hint,
  value = '',
  found,
}: {
  readonly label: string;
  readonly example: string;
  /** Says what the field accepts, if the label does not. */
  readonly hint?: string;
  /** Text at the start. */
  readonly value?: string;
  readonly found: (id: string) => void;
}): JSX.Element {
  const [id, setId] = useState(value);
  return (
    <form
      class="panel lookup"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        found(id);
      }}
    >
      <label for="lookup">{label}</label>
      <div class="field">
        <input
          id="lookup"
          type="text"
          required
          autocomplete="off"
          spellcheck={false}
          placeholder={example}
          aria-describedby={hint === undefined ? undefined : 'lookup-hint'}
          value={id}
          onInput={({ currentTarget }) => setId(currentTarget.value)}
        />
        <button class="primary" type="submit">
          Find
        </button>
      </div>
      {hint !== undefined && (
        <p class="quiet" id="lookup-hint">
          {hint}
        </p>
      )}
    </form>
  );
}
