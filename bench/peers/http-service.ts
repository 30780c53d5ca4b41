/**
 * A Fastify route with a limiter. It parses the same body as Quorate, asks the limiter named on the command line, and
 * answers in the same form. With `bare` it always grants: the yardstick for HTTP.
 */
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { type Limiter, LOAD_RULES, type LoadRuleId } from '../workloads.ts';
import { flexibleLimiter } from './flexible-limiter.ts';

interface Body {
  readonly userId: string;
  readonly rule: LoadRuleId;
}

async function limiterOf(kind: string | undefined, backends: readonly string[]): Promise<Limiter> {
  switch (kind) {
    case 'bare':
      return () => true;
    case 'flexible':
      return flexibleLimiter(backends);
    default:
      throw new Error(`there is no limiter ${kind}`);
  }
}

const [, , kind, ...backends] = process.argv;
const limiter = await limiterOf(kind, backends);
const app = Fastify({ logger: false });
app.post<{ Body: Body }>('/v1/allow', async (request, reply) => {
  const { userId, rule } = request.body;
  const allowed = await limiter(userId, rule);
  const { limit, windowMillis } = LOAD_RULES[rule];
  const decided = { partition: 0, term: 1, index: 1, timeMillis: 0 };
  return reply
    .code(allowed ? 200 : 429)
    .send({ allowed, limit, remaining: allowed ? limit - 1 : 0, resetMillis: windowMillis, rule, decided });
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.((app.server.address() as AddressInfo).port);
process.on('disconnect', () => process.exit());
