/**
 * `SUBSCRIBE` and `UNSUBSCRIBE`: some clients subscribe to a channel in their handshake, and disconnect if they
 * cannot. The answers are those of Redis. Nothing is ever published.
 */
import type { Call, Command } from '../command.ts';
import { failed, type Reply } from '../reply.ts';

/** The most channels of one connection; their names are kept as long as it lives. */
const CHANNELS_MAX = 16;
const CHANNEL_BYTES_MAX = 128;
const FLAGS = ['pubsub', 'noscript', 'loading', 'stale'];

/** `SUBSCRIBE` and `UNSUBSCRIBE`. */
export const CHANNEL_COMMANDS: readonly Command[] = [
  {
    name: 'SUBSCRIBE',
    arity: -2,
    flags: FLAGS,
    key: 0,
    summary: 'Accepted, for clients that subscribe in their handshake: nothing is ever published',
    inTransaction: 'refused',
    whileSubscribed: true,
    run: subscribe,
  },
  {
    name: 'UNSUBSCRIBE',
    arity: -1,
    flags: FLAGS,
    key: 0,
    summary: 'Ends subscriptions, all of them where no channel is named',
    inTransaction: 'refused',
    whileSubscribed: true,
    run: unsubscribe,
  },
];

/** Changes nothing unless there is room for all channels. */
function subscribe({ args, session: { channels } }: Call): Reply {
  const named = channelsIn(args);
  const isTooLong = named.some((channel) => channel.length > CHANNEL_BYTES_MAX);
  if (isTooLong || new Set([...channels, ...named]).size > CHANNELS_MAX) {
    return failed(
      `a connection may subscribe to at most ${CHANNELS_MAX} channels of ${CHANNEL_BYTES_MAX} bytes each`,
    );
  }
  return several(
    named.map((channel) => {
      channels.add(channel);
      return message('subscribe', channel, channels.size);
    }),
  );
}

function unsubscribe({ args, session: { channels } }: Call): Reply {
  const named = args.count > 1 ? channelsIn(args) : [...channels];
  if (named.length === 0) return message('unsubscribe', null, 0);
  return several(
    named.map((channel) => {
      channels.delete(channel);
      return message('unsubscribe', channel, channels.size);
    }),
  );
}

/** One character for each byte, because a channel name may contain any bytes. */
function channelsIn(args: Call['args']): string[] {
  return Array.from({ length: args.count - 1 }, (_, i) => args.bytes(i + 1).toString('latin1'));
}

function message(what: string, channel: string | null, count: number): Reply {
  return { kind: 'push', items: [what, channel === null ? null : Buffer.from(channel, 'latin1'), count] };
}

function several(replies: readonly Reply[]): Reply {
  return { kind: 'several', replies };
}
