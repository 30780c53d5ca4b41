/**
 * The reflection service: lists the services and types of this listener, for tools such as grpcurl. It stops reading
 * a client that does not read its answers.
 */
import { type handleBidiStreamingCall, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { type DescribedFile, describedFiles } from './file-descriptors.ts';
import { HEALTH_SERVICE } from './health.ts';
import { messageType, PROTO_FILES, TYPES } from './protos.ts';
import { RATE_LIMIT_SERVICE } from './should-rate-limit.ts';

/** A version of the reflection protocol. */
export type ReflectionVersion = 'v1' | 'v1alpha';
/** Both versions are served. */
export const REFLECTION_VERSIONS: readonly ReflectionVersion[] = ['v1', 'v1alpha'];

/** The path of the method. */
export function reflectionPath(version: ReflectionVersion): string {
  return `/${reflectionService(version)}/ServerReflectionInfo`;
}

function reflectionService(version: ReflectionVersion): string {
  return `grpc.reflection.${version}.ServerReflection`;
}

const SERVICES = [RATE_LIMIT_SERVICE, HEALTH_SERVICE, ...REFLECTION_VERSIONS.map(reflectionService)];

type Message = Readonly<Record<string, unknown>>;

/** The messages of both versions are identical. */
const REQUEST = messageType('grpc.reflection.v1.ServerReflectionRequest');
const RESPONSE = messageType('grpc.reflection.v1.ServerReflectionResponse');

/** Encodes a response. */
export const encodeReflection = (message: Message): Buffer => RESPONSE.encode(message);

/** The method of the service. */
export function reflect(): handleBidiStreamingCall<Buffer, Message> {
  // Built at the first request, because few nodes ever get one.
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

/** The answer to a request. Undefined: the bytes are no valid request. */
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

/** The file that matches, and all files it imports. */
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
