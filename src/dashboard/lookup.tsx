/** A field in which somebody is named, and a button that looks. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

export function Lookup({
  label,
  example,
  hint,
  found,
}: {
  readonly label: string;
  readonly example: string;
  /** What may be named, if the label does not say it. */
  readonly hint?: string;
  readonly found: (id: string) => void;
}): JSX.Element {
  const [id, setId] = useState('');
  return (
    <form
      class="panel lookup"
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
          Look
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
