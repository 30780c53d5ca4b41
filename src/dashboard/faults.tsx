/** What went wrong lately, and right again. */
import type { JSX } from 'preact';
import type { Fault } from '../api/monitoring.ts';
import { clockTime, faultInWords, type Gravity, gravityOf } from './words.ts';

const MARKS: Readonly<Record<Gravity, string>> = {
  bad: 'fault',
  warning: 'notice',
  good: 'mended',
  usual: 'moved',
};

export function FaultList({ faults }: { readonly faults: readonly Fault[] }): JSX.Element {
  if (faults.length === 0) return <p class="quiet">None since this node was ready.</p>;
  return (
    <ol class="faults">
      {faults.map((fault) => {
        const gravity = gravityOf(fault);
        return (
          <li key={fault.id} class={gravity}>
            <time dateTime={new Date(fault.atMillis).toISOString()}>{clockTime(fault.atMillis)}</time>
            <span class={`mark ${gravity}`}>{MARKS[gravity]}</span>
            <span>{faultInWords(fault)}</span>
          </li>
        );
      })}
    </ol>
  );
}

export function FaultsView({ faults }: { readonly faults: readonly Fault[] }): JSX.Element {
  return (
    <section class="panel" aria-labelledby="faults-title">
      <h2 id="faults-title">As this node saw it, the latest first</h2>
      <p class="quiet">The last hundred are kept, in memory: a node that restarts begins anew.</p>
      <FaultList faults={faults} />
    </section>
  );
}
