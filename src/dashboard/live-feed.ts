/**
 * Reads the event stream of the node while the page is open, keeps samples for the charts, and reconnects when the
 * stream breaks. It draws nothing.
 */
import type { Fault, LiveCluster, LiveFigures } from '../api/monitoring.ts';
import { EventReader, type ServerEvent } from './event-reader.ts';
import { type Feed, NO_FEED, withSample } from './feed.ts';
import { headersWith, tokenOf } from './session.ts';

/** The node sends something every second. After this silence the connection counts as lost. */
const SILENCE_MILLIS_MAX = 5_000;
const AGAIN_MILLIS = 1_000;

class RefusedError extends Error {
  readonly code = 'REFUSED';
  readonly wantsToken: boolean;

  constructor(message: string, wantsToken: boolean) {
    super(message);
    this.wantsToken = wantsToken;
  }
}

/** One connection to `/v1/events`, with its reconnects. It calls back with the new feed after each change. */
export class LiveFeed {
  readonly #changed: (feed: Feed) => void;
  #feed: Feed = NO_FEED;
  #ended = new AbortController();

  constructor(changed: (feed: Feed) => void) {
    this.#changed = changed;
  }

  start(): void {
    this.#ended = new AbortController();
    void this.#run(this.#ended.signal);
  }

  stop(): void {
    this.#ended.abort();
  }

  /** Reconnects until `stop` is called or the node wants another token. */
  async #run(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      try {
        await this.#listen(ended);
        this.#set({
          status: 'lost',
          reason: 'this node ended the stream: it stops or is drained',
          isAnswered: true,
        });
      } catch (error) {
        if (ended.aborted) return;
        if (error instanceof RefusedError && error.wantsToken) {
          this.#set({ status: 'signIn', reason: error.message });
          return;
        }
        const isAnswered = error instanceof RefusedError;
        this.#set({
          status: 'lost',
          reason: isAnswered ? error.message : 'this node does not answer',
          isAnswered,
        });
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MILLIS));
    }
  }

  async #listen(ended: AbortSignal): Promise<void> {
    const silent = new AbortController();
    const signal = AbortSignal.any([ended, silent.signal]);
    let timer = setTimeout(() => silent.abort(), SILENCE_MILLIS_MAX);
    try {
      const headers = headersWith(tokenOf());
      const response = await fetch('/v1/events', { headers, signal, cache: 'no-store' });
      if (!response.ok || response.body === null) throw await refusalIn(response);
      const events = new EventReader();
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE_MILLIS_MAX);
        this.#take(events.read(decoder.decode(value, { stream: true })));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take(events: readonly ServerEvent[]): void {
    const next: { -readonly [Field in keyof Feed]?: Feed[Field] } = {};
    for (const { name, data } of events) {
      const value = JSON.parse(data) as unknown;
      if (name === 'cluster') next.cluster = value as LiveCluster;
      else if (name === 'faults') next.faults = value as readonly Fault[];
      else if (name === 'figures') {
        next.figures = value as LiveFigures;
        next.samples = withSample(next.samples ?? this.#feed.samples, next.figures);
      }
    }
    if (events.length > 0) this.#set({ ...next, status: 'live', reason: '', heardMillis: Date.now() });
  }

  #set(changes: Partial<Feed>): void {
    this.#feed = { ...this.#feed, ...changes };
    this.#changed(this.#feed);
  }
}

async function refusalIn(response: Response): Promise<RefusedError> {
  const body = (await response.json().catch(() => ({}))) as {
    readonly message?: string;
    readonly error?: { readonly message?: string };
  };
  const message = body.error?.message ?? body.message ?? `status ${response.status}`;
  return new RefusedError(message, response.status === 401 || response.status === 403);
}
