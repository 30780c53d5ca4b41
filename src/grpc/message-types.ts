/** The types of the protocols, read once from their text. */
import protobuf from 'protobufjs';
import { HEALTH_FILE, type ProtoFile, RATE_LIMIT_FILES, reflectionFile } from './protos.ts';

export const PROTO_FILES: readonly ProtoFile[] = [
  ...RATE_LIMIT_FILES,
  HEALTH_FILE,
  reflectionFile('v1'),
  reflectionFile('v1alpha'),
];

export const TYPES: protobuf.Root = typesOf(PROTO_FILES);

/** Fields keep the names of the text. */
export function typesOf(files: readonly ProtoFile[]): protobuf.Root {
  const root = new protobuf.Root();
  for (const { package: name, types } of files)
    protobuf.parse(`syntax = "proto3"; package ${name}; ${types}`, root, { keepCase: true });
  root.resolveAll();
  return root;
}

export interface MessageType {
  /** As a plain object: what is absent has its default, a message `null`. @throws Error if the bytes are no such message */
  decode(bytes: Uint8Array): Readonly<Record<string, unknown>>;
  encode(message: Readonly<Record<string, unknown>>): Buffer;
}

/** @param name with its package */
export function messageType(name: string): MessageType {
  const type = TYPES.lookupType(name);
  return {
    decode: (bytes) => type.toObject(type.decode(bytes), { longs: Number, defaults: true, oneofs: true }),
    encode: (message) => Buffer.from(type.encode(message).finish()),
  };
}
