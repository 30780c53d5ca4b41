/**
 * A form that refunds one request. It needs the request id and all descriptors of the request; the key supplies some of
 * them.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { NO_OUTCOME, OutcomeWords, outcomeOf } from './outcome.tsx';
import { parsedDescriptors } from './key-search.ts';

/** The form. The descriptors of the key are filled in; the operator adds the others. */
export function RefundForm({
  descriptors,
  refund,
  cancel,
}: {
  /** Descriptors in the key. */
  readonly descriptors: ReadonlyMap<string, string>;
  /** Sends the refund and returns the error message, or an empty text if it succeeded. */
  readonly refund: (body: unknown) => Promise<string>;
  readonly cancel: () => void;
}): JSX.Element {
  const [requestId, setRequestId] = useState('');
  const [rest, setRest] = useState('');
  const [reported, setReported] = useState(NO_OUTCOME);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const others = parsedDescriptors(rest);
    if (typeof others === 'string') return setReported({ words: others, isBad: true });
    const problem = await refund({
      requestId,
      descriptors: { ...Object.fromEntries(descriptors), ...others },
    });
    setReported(outcomeOf(problem, `Request ${requestId} is refunded.`));
  };
  return (
    <form class="confirm" onSubmit={(event) => void submit(event)}>
      <p>
        Every limit that counted this request gets its grant back. The caller must not act on the grant any
        more.
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
        Other descriptors of the request, such as endpoint=/search, ip=203.0.113.7 (empty if none)
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
      <OutcomeWords outcome={reported} />
    </form>
  );
}
