/** An HTTP response as plain data, and how it is sent. */
import type { FastifyReply } from 'fastify';

/** A response, before its body is written as JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** The media type of JSON bodies. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Sends a response. */
export function sendAnswer(reply: FastifyReply, { status, headers, body }: HttpAnswer): void {
  void reply.code(status).headers(headers).send(JSON.stringify(body));
}
