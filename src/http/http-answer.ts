/** An HTTP response as data, and how it is sent. Knows nothing of what it says. */
import type { FastifyReply } from 'fastify';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function sendAnswer(reply: FastifyReply, { status, headers, body }: HttpAnswer): void {
  void reply.code(status).headers(headers).send(JSON.stringify(body));
}
