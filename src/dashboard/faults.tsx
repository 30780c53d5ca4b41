/** Lists recent events of the cluster: faults, recoveries and planned moves. */
import type { JSX } from 'preact';
import type { Fault } from '../api/monitoring.ts';
import { clockTime, faultInWords, type Gravity, gravityOf, startOf } from './words.ts';

const MARKS: Readonly<Record<Gravity, string>> = {
  bad: 'fault',
  warning: 'notice',
  good: 'mended',
  usual: 'planned',
};

/** A list of events. */
export function EventList({ events }: { readonly events: readonly Fault[] }): JSX.Element {
  if (events.length === 0)
    return (
      <p class="empty">
        Nothing since this node was ready: no node fell silent, and no partition changed its leader.
      </p>
    );
  return (
    <ol class="faults">
      {events.map((event) => {
        const gravity = gravityOf(event);
        return (
          <li key={event.id} class={gravity}>
            <time dateTime={new Date(event.atMillis).toISOString()}>{clockTime(event.atMillis)}</time>
            <span class={`mark ${gravity}`}>{MARKS[gravity]}</span>
            <span>{startOf(faultInWords(event))}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** The view of all events that the node remembers. */
export function EventsView({
  faults,
  node,
}: {
  readonly faults: readonly Fault[];
  /** The node that saw the events. */
  readonly node: number | undefined;
}): JSX.Element {
  return (
    <section class="panel" aria-labelledby="events-title">
      <h2 id="events-title">As {node === undefined ? 'this node' : `node ${node}`} saw them, latest first</h2>
      <p class="quiet">A node keeps the last hundred in memory, and forgets them when it restarts.</p>
      <EventList events={faults} />
    </section>
  );
}
