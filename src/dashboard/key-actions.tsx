/**
 * The actions of an operator on a key: reset it, block it, or refund a request. Each action asks for confirmation first.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { descriptorsIn, GLOBAL_KEY } from '../api/key-text.ts';
import { BlockMinutes, durationIn } from './block-minutes.tsx';
import { NO_OUTCOME, OutcomeWords, outcomeOf } from './outcome.tsx';
import { RefundForm } from './refund-form.tsx';
import type { Asked, Role } from './session.ts';
import { span } from './words.ts';

const MINUTE_MILLIS = 60_000;
const MINUTES_DEFAULT = '60';
type Choice = 'reset' | 'block' | 'refund';
const CHOICES: Readonly<Record<Choice, string>> = {
  reset: 'Reset…',
  block: 'Block…',
  refund: 'Refund a request…',
};

/** The length of a block, for the label of a button. */
function lengthWords(minutes: string): string {
  const millis = Number(minutes) * MINUTE_MILLIS;
  return minutes === '' ? 'until it is unblocked' : `for ${Number.isFinite(millis) ? span(millis) : '?'}`;
}

function Confirm({
  words,
  yes,
  confirmed,
  cancel,
  children,
}: {
  readonly words: string;
  readonly yes: string;
  readonly confirmed: () => void;
  readonly cancel: () => void;
  readonly children?: JSX.Element;
}): JSX.Element {
  return (
    <form
      class="confirm"
      onSubmit={(event) => {
        event.preventDefault();
        confirmed();
      }}
    >
      <p>{words}</p>
      {children}
      <p class="actions">
        <button class="danger" type="submit">
          {yes}
        </button>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}

/** One button for each action; it opens the form of the action. */
function Buttons({
  choices,
  open,
  choose,
  unblock,
}: {
  readonly choices: readonly Choice[];
  readonly open: Choice | undefined;
  readonly choose: (choice: Choice) => void;
  /** Undefined if the key is not blocked. */
  readonly unblock: (() => void) | undefined;
}): JSX.Element {
  return (
    <p class="actions">
      {unblock !== undefined && <button onClick={unblock}>Unblock</button>}
      {choices.map((choice) => (
        <button key={choice} aria-expanded={open === choice} onClick={() => choose(choice)}>
          {CHOICES[choice]}
        </button>
      ))}
    </p>
  );
}

/** Commands for a viewer who may not block and reset here. */
function Elsewhere({ name, role }: { readonly name: string; readonly role: Role }): JSX.Element {
  const quoted = `'${name.replaceAll("'", String.raw`'\''`)}'`;
  return (
    <>
      <p>
        {role === 'read'
          ? 'Blocking and resetting need a token of role admin, here or on the command line:'
          : 'This cluster is open, and lets no browser block or reset. On the machine of a node:'}
      </p>
      <pre class="commands" tabIndex={0} aria-label="Commands">
        <code>
          {[
            `npx quorate users reset ${quoted}`,
            `npx quorate users block ${quoted} --duration 3600000`,
            `npx quorate users unblock ${quoted}`,
          ].join('\n')}
        </code>
      </pre>
    </>
  );
}

type Operate = (what: string, asked: Asked, done: string) => void;

/** The form of the chosen action. */
function Form({
  name,
  choice,
  operate,
  change,
  close,
}: {
  readonly name: string;
  readonly choice: Choice;
  readonly operate: Operate;
  readonly change: (path: string, asked: Asked) => Promise<string>;
  readonly close: () => void;
}): JSX.Element {
  const [minutes, setMinutes] = useState(MINUTES_DEFAULT);
  switch (choice) {
    case 'reset':
      return (
        <Confirm
          words={`Every limit forgets what it granted to ${name}, which can then use its full limits at once. A block stays.`}
          yes="Yes, forget what was granted"
          confirmed={() => operate('reset', { method: 'POST' }, 'Reset: all its limits are free.')}
          cancel={close}
        />
      );
    case 'block': {
      const body = durationIn(minutes);
      return (
        <Confirm
          words={`Every request that counts for ${name} is denied, even if its limits have room.`}
          yes={`Yes, deny everything ${lengthWords(minutes)}`}
          confirmed={() => operate('block', { method: 'PUT', body }, `Blocked ${lengthWords(minutes)}.`)}
          cancel={close}
        >
          <BlockMinutes minutes={minutes} changed={setMinutes} />
        </Confirm>
      );
    }
    case 'refund':
      return (
        <RefundForm
          descriptors={descriptorsIn(name)}
          refund={(body) => change('/v1/refunds', { method: 'POST', body })}
          cancel={close}
        />
      );
  }
}

/** The panel of actions on a key. */
export function KeyActions({
  name,
  role,
  isBlocked,
  change,
}: {
  readonly name: string;
  readonly role: Role;
  readonly isBlocked: boolean;
  /** Sends the request and returns the error message, or an empty text if it succeeded. */
  readonly change: (path: string, asked: Asked) => Promise<string>;
}): JSX.Element {
  const [open, setOpen] = useState<Choice>();
  const [reported, setReported] = useState(NO_OUTCOME);
  const path = `/v1/keys/${encodeURIComponent(name)}`;
  const close = (): void => setOpen(undefined);
  const operate = async (what: string, asked: Asked, done: string): Promise<void> => {
    close();
    setReported(NO_OUTCOME);
    const problem = await change(`${path}/${what}`, asked);
    setReported(outcomeOf(problem, done));
  };
  const unblock = (): void => void operate('block', { method: 'DELETE' }, 'Unblocked.');
  const isAdmin = role === 'admin';
  const mayRefund = role !== 'read' && name !== GLOBAL_KEY;
  return (
    <section class="panel" aria-labelledby="actions-title">
      <h2 id="actions-title">What to do</h2>
      {!isAdmin && <Elsewhere name={name} role={role} />}
      <Buttons
        choices={[
          ...(isAdmin ? (['reset'] as const) : []),
          ...(isAdmin && !isBlocked ? (['block'] as const) : []),
          ...(mayRefund ? (['refund'] as const) : []),
        ]}
        open={open}
        choose={setOpen}
        unblock={isAdmin && isBlocked ? unblock : undefined}
      />
      {open !== undefined && (
        <Form
          name={name}
          choice={open}
          operate={(...asked) => void operate(...asked)}
          change={change}
          close={close}
        />
      )}
      <OutcomeWords outcome={reported} />
    </section>
  );
}
