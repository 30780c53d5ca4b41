/** The yardstick: a Fastify route that parses the same body, does nothing, and answers with the same shape. */
import Fastify from 'fastify';

const app = Fastify({ logger: false });
app.post('/v1/allow', () => ({
  allowed: true,
  limit: 100,
  remaining: 99,
  resetMillis: 60_000,
  rule: 'default',
  decided: { partition: 0, term: 1, index: 1, timeMillis: 0 },
}));
const address = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(address);
process.on('disconnect', () => void app.close());
