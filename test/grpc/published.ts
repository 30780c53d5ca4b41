/** Where the protocol files are that Envoy publishes: a package of the gRPC project brings them. */
import { join } from 'node:path';

export const ROOT = join(
  import.meta.dirname,
  ...(import.meta.dirname.includes('/dist/') ? ['..'] : []),
  '..',
  '..',
);

const PACKAGE = join(ROOT, 'node_modules', '@grpc', 'grpc-js-xds', 'deps');

/** The folder to look for files in. Google's own imports come with the library that loads the files. */
export const PROTO_ROOTS = [
  ...['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(PACKAGE, name)),
  join(ROOT, 'node_modules', 'protobufjs'),
];
