/** The HTTP/2 connections of the door: takes their calls from the library's server. */
import { type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Server } from '@grpc/grpc-js';

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/**
 * The calls that `mayPass` lets through come to the library, which has one injector.
 *
 * The library shows neither the headers of compression nor the streams, and would answer before anybody could say no.
 */
export function standBefore(
  library: Server,
  mayPass: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean,
): void {
  const { http2Servers } = library as unknown as {
    readonly http2Servers?: ReadonlyMap<Http2Server, unknown>;
  };
  const [server] = http2Servers?.keys() ?? [];
  const [onStream] = (server?.listeners('stream') ?? []) as OnStream[];
  if (server === undefined || onStream === undefined)
    throw new TypeError(
      '@grpc/grpc-js takes its calls from no server of Node: its version is not the one in package.json',
    );
  server.removeAllListeners('stream');
  server.on('stream', (stream, headers) => {
    if (mayPass(stream, headers)) onStream(stream, headers);
  });
}
