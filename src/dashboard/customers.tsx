/** The view of one customer: tier, own limits and block, and a form with which an admin changes them. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { keyText } from '../api/key-text.ts';
import { endWords } from './block-minutes.tsx';
import { type Customer, CustomerForm } from './customer-form.tsx';
import { CUSTOMER } from './key-search.ts';
import { Lookup } from './lookup.tsx';
import { keyHref, useRoute, viewHref } from './router.ts';
import { type Answer, ask, messageOf, type Role } from './session.ts';

function pathOf(customer: string): string {
  return `/v1/customers/${encodeURIComponent(customer)}`;
}

/** The customer that the view shows. */
interface Shown {
  readonly id: string;
  readonly answer: Answer;
}

/** The record in an answer; undefined if there is none or the read failed. */
function customerIn({ status, body }: Answer): Customer | undefined {
  return status === 200 ? (body as Customer) : undefined;
}

function Reported({ customer }: { readonly customer: Customer }): JSX.Element {
  const { version, tier, overrides, blocked } = customer;
  const end = endWords(customer);
  return (
    <dl class="facts">
      <dt>Tier</dt>
      <dd>{tier ?? 'none'}</dd>
      <dt>Blocked</dt>
      <dd>{blocked ? `yes: everything is denied${end}` : 'no'}</dd>
      <dt>Limits of its own</dt>
      <dd>
        {overrides.length === 0
          ? 'none'
          : overrides.map(({ rule, limit, burst }) => (
              <span key={rule} class="row">
                {rule}: {limit}
                {burst !== undefined && `, burst ${burst}`}
              </span>
            ))}
      </dd>
      <dt>Version</dt>
      <dd>{version}</dd>
    </dl>
  );
}

/** Finds customers by id. */
export function CustomersView({ role }: { readonly role: Role }): JSX.Element {
  const [shown, setShown] = useState<Shown>();
  const [words, setWords] = useState('');
  const read = async (id: string): Promise<void> => setShown({ id, answer: await ask(pathOf(id)) });
  const change = async (
    id: string,
    method: 'PUT' | 'DELETE',
    ifMatch: string,
    body?: unknown,
  ): Promise<void> => {
    const answer = await ask(pathOf(id), { method, ifMatch, body });
    setWords(answer.status === 200 ? 'Done: every node applies it.' : messageOf(answer));
    await read(id);
  };
  const { sought } = useRoute();
  useEffect(() => {
    setWords('');
    setShown(undefined);
    if (sought !== '') void read(sought);
  }, [sought]);
  const find = (id: string): void => {
    if (id === sought) void read(id);
    else location.hash = viewHref('customers', id);
  };
  const key = shown && keyText([[CUSTOMER, shown.id]]);
  const customer = shown && customerIn(shown.answer);
  const isUnknown = shown?.answer.status === 404;
  return (
    <>
      <Lookup key={sought} label="Customer id" example="acme" value={sought} found={find} />
      {shown !== undefined && customer === undefined && (
        <p class={`message ${isUnknown ? '' : 'bad'}`} role="status">
          {messageOf(shown.answer)}
        </p>
      )}
      {shown !== undefined && (customer !== undefined || isUnknown) && (
        <section class="panel" aria-labelledby="customer-title">
          <h2 id="customer-title">{shown.id}</h2>
          {customer !== undefined && <Reported customer={customer} />}
          {key !== undefined && (
            <p>
              <a class="key" href={keyHref(key)}>
                What is counted for {key}
              </a>
            </p>
          )}
          {role === 'admin' && (
            <CustomerForm
              key={`${shown.id} ${customer?.version ?? 0}`}
              customer={customer}
              save={(body) => void change(shown.id, 'PUT', shown.answer.etag ?? '"0"', body)}
              remove={() => void change(shown.id, 'DELETE', shown.answer.etag ?? '"0"')}
            />
          )}
          <p class="message" role="status">
            {words}
          </p>
        </section>
      )}
    </>
  );
}
