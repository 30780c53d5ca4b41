/** The protobuf types of all protocols, parsed once from their text. */
import protobuf from 'protobufjs';
import { HEALTH_FILE, type ProtoFile, RATE_LIMIT_FILES, reflectionFile } from './protos.ts';

/** All protocol files. */
export const PROTO_FILES: readonly ProtoFile[] = [
  ...RATE_LIMIT_FILES,
  HEALTH_FILE,
  reflectionFile('v1'),
  reflectionFile('v1alpha'),
];

/** The types of all protocol files. */
export const TYPES: protobuf.Root = typesOf(PROTO_FILES);

/** Parses files into types. Fields keep the names of the text. */
export function typesOf(files: readonly ProtoFile[]): protobuf.Root {
  const root = new protobuf.Root();
  for (const { package: name, types } of files)
    protobuf.parse(`syntax = "proto3"; package ${name}; ${types}`, root, { keepCase: true });
  root.resolveAll();
  return root;
}

/** Decodes and encodes one type of message. */
export interface MessageType {
  /**
   * Decodes to a plain object. An absent field has its default value, an absent message is `null`. @throws Error if
   * the bytes are not such a message
   */
  decode(bytes: Uint8Array): Readonly<Record<string, unknown>>;
  /** Encodes a message. */
  encode(message: Readonly<Record<string, unknown>>): Buffer;
}

/** The message type of this name. @param name with its package */
export function messageType(name: string): MessageType {
  const type = TYPES.lookupType(name);
  return {
    decode: (bytes) => type.toObject(type.decode(bytes), { longs: Number, defaults: true, oneofs: true }),
    encode: (message) => Buffer.from(type.encode(message).finish()),
  };
}
