/**
 * Encodes all requests of a load once, before it starts, into one Buffer. A connection sends slices of this Buffer, so
 * that no encoding costs time during the load.
 */
import type { KeyChooser, LoadRequest } from '../workloads.ts';
import type { RespForm } from './load-job.ts';
import type { ReplyMeaning } from './reply-counter.ts';

/** Timeout of WAIT. A WAIT that times out acknowledges too few replicas, which counts as an error. */
const WAIT_MILLIS_MAX = 1_000;

/** Encodes one command as an array of bulk strings. */
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

/** How to read the answers to pipelines of `depth`. */
export function meaningOf({ grantValue, waitForReplicas }: RespForm, depth: number): ReplyMeaning {
  if (waitForReplicas === 0) return { grantValue };
  return { grantValue, wait: { answers: depth, replicasMin: waitForReplicas } };
}

export class EncodedRequests {
  readonly pipelines: number;
  readonly #bytes: Buffer;
  /** Start of each pipeline, and the end of the last one. */
  readonly #starts: Uint32Array;

  /** @param texts one for each pipeline, with all its requests */
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

  /** One pipeline, as a view without a copy. */
  pipeline(at: number): Buffer {
    return this.pipelinesFrom(at, 1);
  }

  /** Several consecutive pipelines, as a view without a copy. */
  pipelinesFrom(at: number, count: number): Buffer {
    return this.#bytes.subarray(this.#starts[at], this.#starts[at + count]);
  }
}

/**
 * Draws `count` requests and encodes them in pipelines of `depth`, each followed by a WAIT if replicas must have the
 * grants. `accept` filters the requests.
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
