/** Gives a request back: by its id, and by what it said, which the key tells a part of. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { NO_OUTCOME, OutcomeWords, outcomeOf } from './outcome.tsx';
import { parsedDescriptors } from './refund-text.ts';

export function RefundForm({
  descriptors,
  refund,
  cancel,
}: {
  /** As the key has them. */
  readonly descriptors: ReadonlyMap<string, string>;
  /** Answers what is wrong; empty: it is done. */
  readonly refund: (body: unknown) => Promise<string>;
  readonly cancel: () => void;
}): JSX.Element {
  const [requestId, setRequestId] = useState('');
  const [rest, setRest] = useState('');
  const [told, setTold] = useState(NO_OUTCOME);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const others = parsedDescriptors(rest);
    if (typeof others === 'string') return setTold({ words: others, isBad: true });
    const problem = await refund({
      requestId,
      descriptors: { ...Object.fromEntries(descriptors), ...others },
    });
    setTold(outcomeOf(problem, `Request ${requestId} is given back.`));
  };
  return (
    <form class="confirm" onSubmit={(event) => void submit(event)}>
      <p>
        What a request was granted is free again, in every limit that counted it. It must not be used after
        that.
      </p>
      <label>
        Request id
        <input
          type="text"
          required
          autocomplete="off"
          spellcheck={false}
          value={requestId}
          onInput={({ currentTarget }) => setRequestId(currentTarget.value)}
        />
      </label>
      <label>
        What else the request said, as endpoint=/search, ip=203.0.113.7; empty: nothing
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          value={rest}
          onInput={({ currentTarget }) => setRest(currentTarget.value)}
        />
      </label>
      <p class="actions">
        <button class="danger" type="submit">
          Yes, refund this request
        </button>
        <button type="button" onClick={cancel}>
          Close
        </button>
      </p>
      <OutcomeWords outcome={told} />
    </form>
  );
}
