/** A client that speaks HTTP/2 frame by frame, so it can send anything and leave any request incomplete. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/should-rate-limit.ts';

export class RawCall {
  readonly stream: ClientHttp2Stream;
  /** Its headers and trailers, once it has ended. */
  readonly answer: Promise<IncomingHttpHeaders>;
  isOver = false;

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    const answer: IncomingHttpHeaders = {};
    stream.on('response', (headers) => Object.assign(answer, headers));
    stream.on('trailers', (headers) => Object.assign(answer, headers));
    stream.on('error', () => {});
    stream.resume();
    this.answer = new Promise((resolve) => {
      stream.once('close', () => {
        this.isOver = true;
        resolve(answer);
      });
    });
  }
}

export class RawCalls {
  readonly session: ClientHttp2Session;

  /** @param from a loopback address */
  constructor(port: number, from = '127.0.0.1') {
    this.session = connect(`http://127.0.0.1:${port}`, {
      createConnection: () => connectTcp({ port, host: '127.0.0.1', localAddress: from }),
    });
    this.session.on('error', () => {});
  }

  /** Starts a call and does not end it. */
  begin(headers: OutgoingHttpHeaders = {}): RawCall {
    return new RawCall(
      this.session.request({
        ':method': 'POST',
        ':path': SHOULD_RATE_LIMIT,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...headers,
      }),
    );
  }

  /** A complete call. */
  ask(message: Uint8Array, headers: OutgoingHttpHeaders = {}): RawCall {
    const call = this.begin(headers);
    call.stream.end(framed(message));
    return call;
  }

  close(): void {
    this.session.destroy();
  }
}

export function framed(message: Uint8Array, isCompressed = false): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(isCompressed ? 1 : 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The first bytes of a client. */
export const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(4, 0, 0, Buffer.alloc(0)),
]);
