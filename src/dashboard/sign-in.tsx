/** The form that asks for a token. The token is sent only to the node that served this page. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

/** The sign-in form. */
export function SignIn({
  isRefused,
  reason,
  signIn,
}: {
  /** The node refused the last token. */
  readonly isRefused: boolean;
  readonly reason: string;
  readonly signIn: (token: string) => void;
}): JSX.Element {
  const [token, setToken] = useState('');
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== '') signIn(token.trim());
  };
  return (
    <form class="panel narrow" onSubmit={submit}>
      <h2>Sign in</h2>
      <p>
        A token of role <code>read</code> shows everything here, one of role <code>admin</code> may change it.
        It is kept in this tab alone, until you close it.
      </p>
      {isRefused && (
        <p class="message bad" role="alert">
          This token is not accepted: {reason}. Make another one on the machine of a node:{' '}
          <code>npx quorate tokens create --role read</code>
        </p>
      )}
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={token}
        onInput={({ currentTarget }) => setToken(currentTarget.value)}
      />
      <button class="primary" type="submit">
        Sign in
      </button>
    </form>
  );
}
