/** Floods of slow or idle connections to every listener. The bystander measures their effect on others. */
import type { Attack, Outcome } from './attack.ts';
import type { Listener } from './scale.ts';
import { crowd, type Intruder, type OpenOptions } from './sockets.ts';
import type { Target } from './target.ts';

const HELD_MILLIS = 3_000;

/**
 * Opens all connections, holds them and closes them. An accepted connection is no intrusion; only its effect on others
 * counts.
 */
async function flood(target: Target, listener: Listener, options: OpenOptions, says = ''): Promise<Outcome> {
  const count = target.scale.many;
  const all: Intruder[] = [...(await crowd(target.address(1, listener), count, options))];
  if (says !== '') for (const each of all) each.say(says);
  await new Promise((resolve) => setTimeout(resolve, HELD_MILLIS));
  for (const each of all) each.leave();
  return { tries: count, gotIn: [] };
}

const HALF_COMMAND = '*2\r\n$5\r\nALLOW\r\n$4\r\ne';

export const FLOODS: readonly Attack[] = [
  {
    name: 'connections that say nothing',
    listener: 'http',
    run: async (target) => flood(target, 'http', { plain: true }),
  },
  {
    name: 'connections after their handshake',
    listener: 'http',
    run: async (target) => flood(target, 'http', {}),
  },
  {
    name: 'connections with half a command',
    listener: 'resp',
    run: async (target) => flood(target, 'resp', {}, HALF_COMMAND),
  },
  {
    name: 'connections that say nothing',
    listener: 'peer',
    run: async (target) => flood(target, 'peer', { plain: true }),
  },
  {
    name: 'handshakes without a certificate',
    listener: 'peer',
    run: async (target) => flood(target, 'peer', {}),
  },
];
