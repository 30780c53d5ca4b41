/**
 * Requests written down once, one after the other in one Buffer: what a connection sends is a piece of it, so that load
 * costs no encoding while it runs.
 */
import type { KeyChooser, LoadRequest } from '../workloads.ts';
import type { RespForm } from './load-job.ts';
import type { ReplyMeaning } from './reply-counter.ts';

/** Milliseconds after which a WAIT gives up: then it acknowledges less than it should, which counts as an error. */
const WAIT_MILLIS_MAX = 1_000;

/** One command as an array of bulk strings. */
export function encodeCommand(args: readonly string[]): string {
  let text = `*${args.length}\r\n`;
  for (const arg of args) text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
  return text;
}

function encodeRequest({ commands }: RespForm, { key, rule }: LoadRequest): string {
  return encodeCommand(commands[rule].map((arg) => (arg === '{key}' ? key : arg)));
}

function encodeWait({ waitForReplicas }: RespForm): string {
  if (waitForReplicas === 0) return '';
  return encodeCommand(['WAIT', String(waitForReplicas), String(WAIT_MILLIS_MAX)]);
}

/** How the answers to pipelines of `depth` are to be read. */
export function meaningOf({ grantValue, waitForReplicas }: RespForm, depth: number): ReplyMeaning {
  if (waitForReplicas === 0) return { grantValue };
  return { grantValue, wait: { answers: depth, replicasMin: waitForReplicas } };
}

export class EncodedRequests {
  readonly pipelines: number;
  readonly #bytes: Buffer;
  /** Where each pipeline begins, and the last one ends. */
  readonly #starts: Uint32Array;

  /** @param texts as many as there are pipelines, each with all of its requests */
  constructor(texts: readonly string[]) {
    this.pipelines = texts.length;
    this.#starts = new Uint32Array(texts.length + 1);
    let bytes = 0;
    for (const [i, text] of texts.entries()) {
      bytes += Buffer.byteLength(text);
      this.#starts[i + 1] = bytes;
    }
    this.#bytes = Buffer.allocUnsafe(bytes);
    for (const [i, text] of texts.entries()) this.#bytes.write(text, this.#starts[i] ?? 0);
  }

  /** A view: nothing is copied. */
  pipeline(at: number): Buffer {
    return this.pipelinesFrom(at, 1);
  }

  /** The same of some that follow each other. */
  pipelinesFrom(at: number, count: number): Buffer {
    return this.#bytes.subarray(this.#starts[at], this.#starts[at + count]);
  }
}

/**
 * So many requests in pipelines of `depth`, as they are drawn, each with a WAIT at its end if replicas must have them. With `accept`,
 * only requests that it accepts.
 *
 * @throws RangeError if hardly any request is accepted
 */
export function encodePipelines(
  next: KeyChooser,
  form: RespForm,
  { requests, depth }: { readonly requests: number; readonly depth: number },
  accept: (key: string) => boolean = () => true,
): EncodedRequests {
  const texts: string[] = [];
  const wait = encodeWait(form);
  let refusals = 0;
  while (texts.length * depth < requests) {
    let text = '';
    for (let i = 0; i < depth;) {
      const request = next();
      if (accept(request.key)) {
        text += encodeRequest(form, request);
        i += 1;
        refusals = 0;
      } else if ((refusals += 1) > 1_000_000) {
        throw new RangeError('a node serves none of the keys of this workload: nothing can be sent to it');
      }
    }
    texts.push(text + wait);
  }
  return new EncodedRequests(texts);
}
