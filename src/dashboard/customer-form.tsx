/**
 * A form that replaces the whole record of a customer. The node accepts it only if nobody changed the record meanwhile.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type Block, BlockFields, blockIn } from './block-minutes.tsx';

/** A customer's own limit for one rule. */
export interface Override {
  readonly rule: string;
  readonly limit: number;
  readonly burst?: number;
}

/** Body of `GET /v1/customers/{customer}`. */
export interface Customer {
  readonly version: number;
  readonly tier?: string;
  readonly overrides: readonly Override[];
  readonly blocked: boolean;
  /** Set if the block ends by itself. On the clock of the partition, like `decided.timeMillis`. */
  readonly blockedUntilMillis?: number;
  readonly decided: { readonly timeMillis: number };
}

/** An override in text fields. */
interface Row {
  readonly rule: string;
  readonly limit: string;
  readonly burst: string;
}

const NO_ROW: Row = { rule: '', limit: '', burst: '' };

function rowOf({ rule, limit, burst }: Override): Row {
  return { rule, limit: String(limit), burst: burst === undefined ? '' : String(burst) };
}

/** Converts the fields; the node checks them. */
function overrideOf({ rule, limit, burst }: Row): Override {
  return { rule, limit: Number(limit), ...(burst !== '' && { burst: Number(burst) }) };
}

function RowFields({
  row,
  at,
  changed,
  remove,
}: {
  readonly row: Row;
  readonly at: number;
  readonly changed: (row: Row) => void;
  readonly remove: () => void;
}): JSX.Element {
  const field = (name: keyof Row, label: string): JSX.Element => (
    <label>
      {label}
      <input
        type="text"
        inputMode={name === 'rule' ? 'text' : 'numeric'}
        pattern={name === 'rule' ? undefined : '[0-9]+'}
        required={name !== 'burst'}
        value={row[name]}
        onInput={({ currentTarget }) => changed({ ...row, [name]: currentTarget.value })}
      />
    </label>
  );
  return (
    <fieldset class="override">
      <legend>Limit {at + 1}</legend>
      {field('rule', 'Rule')}
      {field('limit', 'Limit')}
      {field('burst', 'Burst (token buckets only)')}
      <button type="button" onClick={remove}>
        Remove
      </button>
    </fieldset>
  );
}

/** The form for one customer. */
export function CustomerForm({
  customer,
  save,
  remove,
}: {
  /** Undefined if there is no record yet. */
  readonly customer: Customer | undefined;
  readonly save: (body: unknown) => void;
  readonly remove: () => void;
}): JSX.Element {
  const [tier, setTier] = useState(customer?.tier ?? '');
  const wasBlocked = customer?.blocked ?? false;
  const [block, setBlock] = useState<Block>({ isBlocked: wasBlocked, minutes: '' });
  const [rows, setRows] = useState<readonly Row[]>((customer?.overrides ?? []).map(rowOf));
  const [isSure, setSure] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const terms = { ...(tier !== '' && { tier }), overrides: rows.map(overrideOf) };
    save({ ...terms, ...blockIn(block, wasBlocked) });
  };
  return (
    <form onSubmit={submit}>
      <h3>Change this customer</h3>
      <label for="tier">Tier</label>
      <input
        id="tier"
        type="text"
        value={tier}
        onInput={({ currentTarget }) => setTier(currentTarget.value)}
      />
      {rows.map((row, at) => (
        <RowFields
          key={at}
          row={row}
          at={at}
          changed={(next) => setRows(rows.map((each, i) => (i === at ? next : each)))}
          remove={() => setRows(rows.filter((_, i) => i !== at))}
        />
      ))}
      <BlockFields block={block} wasBlocked={wasBlocked} changed={setBlock} />
      <p class="actions">
        <button type="button" onClick={() => setRows([...rows, NO_ROW])}>
          Add a limit
        </button>
        <button class="primary" type="submit">
          Save
        </button>
        {customer !== undefined &&
          (isSure ? (
            <button type="button" class="danger" onClick={remove}>
              Yes, forget this customer
            </button>
          ) : (
            <button type="button" onClick={() => setSure(true)}>
              Delete
            </button>
          ))}
      </p>
    </form>
  );
}
