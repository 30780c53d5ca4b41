/** How one user stands: each limit with its window as a timeline, and what an operator may do to the key. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { BlockMinutes, durationIn, endWords } from './block-minutes.tsx';
import { Lookup } from './lookup.tsx';
import { type Answer, ask, type Asked, messageOf, type Role } from './session.ts';
import { Timeline, type WindowStanding } from './timeline.tsx';
import { clockTime } from './words.ts';

const AGAIN_MILLIS = 2_000;
const HINT = 'Under rules of a document: the key that a limit counts by, as user=ada or customer=acme.';

interface Standing {
  readonly userId: string;
  readonly blocked?: boolean;
  readonly blockedUntilMillis?: number;
  readonly decided: { readonly timeMillis: number };
  readonly unmatched?: boolean;
  readonly rulesVersion: number;
  readonly limits: readonly WindowStanding[];
}

interface Looked {
  readonly answer: Answer;
  readonly atMillis: number;
}

function useStanding(userId: string, asked: number): Looked | undefined {
  const [looked, setLooked] = useState<Looked>();
  useEffect(() => {
    if (userId === '') return undefined;
    let isOver = false;
    const look = async (): Promise<void> => {
      const answer = await ask(`/v1/users/${encodeURIComponent(userId)}`);
      if (!isOver) setLooked({ answer, atMillis: Date.now() });
    };
    void look();
    const timer = setInterval(() => void look(), AGAIN_MILLIS);
    return () => {
      isOver = true;
      clearInterval(timer);
      setLooked(undefined);
    };
  }, [userId, asked]);
  return looked;
}

function Operate({
  userId,
  isBlocked,
  done,
}: {
  readonly userId: string;
  readonly isBlocked: boolean;
  readonly done: () => void;
}): JSX.Element {
  const [words, setWords] = useState('');
  const [minutes, setMinutes] = useState('');
  const [isSure, setSure] = useState(false);
  const path = `/v1/users/${encodeURIComponent(userId)}`;
  const operate = async (what: string, asked: Asked): Promise<void> => {
    const answer = await ask(`${path}/${what}`, asked);
    setWords(answer.status === 200 ? 'Done.' : messageOf(answer));
    setSure(false);
    done();
  };
  return (
    <>
      <p class="actions">
        {isBlocked ? (
          <button onClick={() => void operate('block', { method: 'DELETE' })}>Unblock</button>
        ) : (
          <>
            <BlockMinutes minutes={minutes} changed={setMinutes} />
            <button onClick={() => void operate('block', { method: 'PUT', body: durationIn(minutes) })}>
              Block: deny everything
            </button>
          </>
        )}
        {isSure ? (
          <button class="danger" onClick={() => void operate('reset', { method: 'POST' })}>
            Yes, forget what was granted
          </button>
        ) : (
          <button onClick={() => setSure(true)}>Reset</button>
        )}
      </p>
      <p class="message" role="status">
        {words}
      </p>
    </>
  );
}

export function UsersView({ role }: { readonly role: Role }): JSX.Element {
  const [userId, setUserId] = useState('');
  const [asked, setAsked] = useState(0);
  const looked = useStanding(userId, asked);
  const standing = looked?.answer.status === 200 ? (looked.answer.body as Standing) : undefined;
  return (
    <>
      <Lookup label="User id" example="ada" hint={HINT} found={setUserId} />
      {looked !== undefined && standing === undefined && (
        <p class="message bad" role="alert">
          {messageOf(looked.answer)}
        </p>
      )}
      {looked !== undefined && standing !== undefined && (
        <section class="panel" aria-labelledby="standing-title">
          <h2 id="standing-title">{standing.userId}</h2>
          {standing.blocked === true && (
            <p class="message bad">
              <strong>Blocked:</strong> everything is denied, whatever is left{endWords(standing)}.
            </p>
          )}
          {standing.unmatched === true && (
            <p class="message bad">
              <strong>Denied:</strong> no rule is for it, and the rules deny such requests.
            </p>
          )}
          <p class="quiet">
            As its leader says, by version {standing.rulesVersion} of the rules, at{' '}
            {clockTime(looked.atMillis)}; asked again every two seconds. A request of cost 1 would find this.
          </p>
          <Timeline limits={standing.limits} />
          {role === 'admin' && (
            <Operate userId={userId} isBlocked={standing.blocked === true} done={() => setAsked(asked + 1)} />
          )}
        </section>
      )}
    </>
  );
}
