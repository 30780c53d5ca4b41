/** The paths of the protocol files that Envoy publishes: they are in a package of the gRPC project. */
import { join } from 'node:path';

export const ROOT = join(
  import.meta.dirname,
  ...(import.meta.dirname.includes('/dist/') ? ['..'] : []),
  '..',
  '..',
);

const PACKAGE = join(ROOT, 'node_modules', '@grpc', 'grpc-js-xds', 'deps');

/** The folder with the files. Google's own imports come with the library that loads the files. */
export const PROTO_ROOTS = [
  ...['envoy-api', 'xds', 'googleapis', 'protoc-gen-validate'].map((name) => join(PACKAGE, name)),
  join(ROOT, 'node_modules', 'protobufjs'),
];
