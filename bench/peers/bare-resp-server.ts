/**
 * The yardstick for the Redis protocol: a server that parses commands, does nothing, and answers each with the five
 * integers of a CL.THROTTLE grant. It writes all answers to a chunk at once.
 */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { ReplyCounter } from '../load/reply-counter.ts';

const GRANT = '*5\r\n:0\r\n:1000000\r\n:999999\r\n:-1\r\n:10\r\n';
const GRANTS_AT_ONCE = 64;
const GRANTS = Buffer.from(GRANT.repeat(GRANTS_AT_ONCE));

const server = createServer({ noDelay: true }, (socket) => {
  // A command is an array of strings, so the counter of replies can count commands, too.
  const commands = new ReplyCounter({ grantValue: 0 });
  let answered = 0;
  socket.on('data', (chunk) => {
    commands.feed(chunk);
    socket.cork();
    for (; answered < commands.answers;) {
      const count = Math.min(GRANTS_AT_ONCE, commands.answers - answered);
      socket.write(GRANTS.subarray(0, count * GRANT.length));
      answered += count;
    }
    socket.uncork();
  });
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('disconnect', () => process.exit());
