/** Server reflection: tells tools such as grpcurl what is served here. Of a client it reads no more than it has answered. */
import type { handleBidiStreamingCall, ServerDuplexStream } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { type DescribedFile, describedFiles } from './file-descriptors.ts';
import { HEALTH_SERVICE } from './health.ts';
import { messageType, PROTO_FILES, TYPES } from './message-types.ts';
import { RATE_LIMIT_SERVICE } from './should-rate-limit.ts';

export type ReflectionVersion = 'v1' | 'v1alpha';
export const REFLECTION_VERSIONS: readonly ReflectionVersion[] = ['v1', 'v1alpha'];

export function reflectionPath(version: ReflectionVersion): string {
  return `/${reflectionService(version)}/ServerReflectionInfo`;
}

function reflectionService(version: ReflectionVersion): string {
  return `grpc.reflection.${version}.ServerReflection`;
}

const SERVICES = [RATE_LIMIT_SERVICE, HEALTH_SERVICE, ...REFLECTION_VERSIONS.map(reflectionService)];

type Message = Readonly<Record<string, unknown>>;

/** The requests and the answers of both versions look alike. */
const REQUEST = messageType('grpc.reflection.v1.ServerReflectionRequest');
const RESPONSE = messageType('grpc.reflection.v1.ServerReflectionResponse');

export const encodeReflection = (message: Message): Buffer => RESPONSE.encode(message);

export function reflect(): handleBidiStreamingCall<Buffer, Message> {
  // Few nodes are ever asked.
  let files: readonly DescribedFile[] | undefined;
  return (call) => {
    call.on('data', (bytes: Buffer) => {
      files ??= describedFiles(PROTO_FILES, TYPES);
      const answer = answerTo(bytes, files);
      if (answer === undefined) call.emit('error', MALFORMED);
      else if (!call.write(answer)) waitForRoom(call);
    });
    call.on('end', () => call.end());
  };
}

const MALFORMED = { code: status.INVALID_ARGUMENT, details: 'no ServerReflectionRequest' };

function waitForRoom(call: ServerDuplexStream<Buffer, Message>): void {
  call.pause();
  call.once('drain', () => call.resume());
}

/** Undefined: the bytes are no request. */
function answerTo(bytes: Buffer, files: readonly DescribedFile[]): Message | undefined {
  try {
    const request = REQUEST.decode(bytes);
    return { valid_host: request['host'], original_request: request, ...answerOf(request, files) };
  } catch {
    return undefined;
  }
}

function answerOf(request: Message, files: readonly DescribedFile[]): Message {
  const asked = request[String(request['message_request'])];
  const named = typeof asked === 'string' ? asked : '';
  switch (request['message_request']) {
    case 'list_services':
      return { list_services_response: { service: SERVICES.map((name) => ({ name })) } };
    case 'file_by_filename':
      return filesOr(files, (file) => file.name === named, `no file ${named} is served here`);
    case 'file_containing_symbol':
      return filesOr(files, (file) => file.symbols.has(named), `no ${named} is served here`);
    default:
      return errorOf(status.UNIMPLEMENTED, 'there are no extensions here');
  }
}

/** The file, and all that it imports. */
function filesOr(
  files: readonly DescribedFile[],
  isWanted: (file: DescribedFile) => boolean,
  otherwise: string,
): Message {
  const found = files.find(isWanted);
  if (found === undefined) return errorOf(status.NOT_FOUND, otherwise);
  const needed = new Set([found]);
  for (const file of needed)
    for (const name of file.imports) {
      const imported = files.find((each) => each.name === name);
      if (imported !== undefined) needed.add(imported);
    }
  return { file_descriptor_response: { file_descriptor_proto: [...needed].map(({ bytes }) => bytes) } };
}

function errorOf(code: status, message: string): Message {
  return { error_response: { error_code: code, error_message: message } };
}
