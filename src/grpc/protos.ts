/**
 * The protocols of the gRPC listener in protobuf language: the part of Envoy's rate limit service that is served
 * here, with its original names and numbers, the health service, and the reflection service. The texts are parsed into
 * types once. Unknown fields of a request are skipped.
 */
import protobuf from 'protobufjs';

/** One protocol file. */
export interface ProtoFile {
  /** The name of the file in its published package. */
  readonly name: string;
  readonly package: string;
  readonly imports: readonly string[];
  readonly types: string;
}

const UNIT_FILE = 'envoy/type/v3/ratelimit_unit.proto';
const DESCRIPTOR_FILE = 'envoy/extensions/common/ratelimit/v3/ratelimit.proto';
const HEADER_FILE = 'envoy/config/core/v3/base.proto';
const DURATION_FILE = 'google/protobuf/duration.proto';
const WRAPPERS_FILE = 'google/protobuf/wrappers.proto';

/** Envoy's rate limit service (https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto). */
export const RATE_LIMIT_FILES: readonly ProtoFile[] = [
  {
    name: DURATION_FILE,
    package: 'google.protobuf',
    imports: [],
    types: 'message Duration { int64 seconds = 1; int32 nanos = 2; }',
  },
  {
    name: WRAPPERS_FILE,
    package: 'google.protobuf',
    imports: [],
    types: 'message UInt64Value { uint64 value = 1; }',
  },
  {
    name: UNIT_FILE,
    package: 'envoy.type.v3',
    imports: [],
    types:
      'enum RateLimitUnit { UNKNOWN = 0; SECOND = 1; MINUTE = 2; HOUR = 3; DAY = 4; MONTH = 5; YEAR = 6; }',
  },
  {
    name: HEADER_FILE,
    package: 'envoy.config.core.v3',
    imports: [],
    types: 'message HeaderValue { string key = 1; string value = 2; bytes raw_value = 3; }',
  },
  {
    name: DESCRIPTOR_FILE,
    package: 'envoy.extensions.common.ratelimit.v3',
    imports: [UNIT_FILE, WRAPPERS_FILE],
    types: `
      message RateLimitDescriptor {
        message Entry { string key = 1; string value = 2; }
        message RateLimitOverride {
          uint32 requests_per_unit = 1;
          envoy.type.v3.RateLimitUnit unit = 2;
        }
        repeated Entry entries = 1;
        RateLimitOverride limit = 2;
        google.protobuf.UInt64Value hits_addend = 3;
        bool is_negative_hits = 4;
      }`,
  },
  {
    name: 'envoy/service/ratelimit/v3/rls.proto',
    package: 'envoy.service.ratelimit.v3',
    imports: [DESCRIPTOR_FILE, HEADER_FILE, DURATION_FILE],
    types: `
      message RateLimitRequest {
        string domain = 1;
        repeated envoy.extensions.common.ratelimit.v3.RateLimitDescriptor descriptors = 2;
        uint32 hits_addend = 3;
      }
      message RateLimitResponse {
        enum Code { UNKNOWN = 0; OK = 1; OVER_LIMIT = 2; }
        message RateLimit {
          enum Unit {
            UNKNOWN = 0; SECOND = 1; MINUTE = 2; HOUR = 3; DAY = 4; MONTH = 5; YEAR = 6; WEEK = 7;
          }
          uint32 requests_per_unit = 1;
          Unit unit = 2;
          string name = 3;
        }
        message DescriptorStatus {
          Code code = 1;
          RateLimit current_limit = 2;
          uint32 limit_remaining = 3;
          google.protobuf.Duration duration_until_reset = 4;
        }
        Code overall_code = 1;
        repeated DescriptorStatus statuses = 2;
        repeated envoy.config.core.v3.HeaderValue response_headers_to_add = 3;
      }
      service RateLimitService {
        rpc ShouldRateLimit (RateLimitRequest) returns (RateLimitResponse);
      }`,
  },
];

/** The standard health service (https://github.com/grpc/grpc/blob/master/doc/health-checking.md). */
export const HEALTH_FILE: ProtoFile = {
  name: 'grpc/health/v1/health.proto',
  package: 'grpc.health.v1',
  imports: [],
  types: `
    message HealthCheckRequest { string service = 1; }
    message HealthCheckResponse {
      enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
      ServingStatus status = 1;
    }
    service Health {
      rpc Check (HealthCheckRequest) returns (HealthCheckResponse);
      rpc Watch (HealthCheckRequest) returns (stream HealthCheckResponse);
    }`,
};

/**
 * The reflection service. @param version `v1`, or `v1alpha`, which most tools still try first; they only differ in
 * their name
 */
export function reflectionFile(version: 'v1' | 'v1alpha'): ProtoFile {
  return {
    name: `grpc/reflection/${version}/reflection.proto`,
    package: `grpc.reflection.${version}`,
    imports: [],
    types: `
      message ExtensionRequest { string containing_type = 1; int32 extension_number = 2; }
      message ServerReflectionRequest {
        string host = 1;
        oneof message_request {
          string file_by_filename = 3;
          string file_containing_symbol = 4;
          ExtensionRequest file_containing_extension = 5;
          string all_extension_numbers_of_type = 6;
          string list_services = 7;
        }
      }
      message FileDescriptorResponse { repeated bytes file_descriptor_proto = 1; }
      message ExtensionNumberResponse { string base_type_name = 1; repeated int32 extension_number = 2; }
      message ServiceResponse { string name = 1; }
      message ListServiceResponse { repeated ServiceResponse service = 1; }
      message ErrorResponse { int32 error_code = 1; string error_message = 2; }
      message ServerReflectionResponse {
        string valid_host = 1;
        ServerReflectionRequest original_request = 2;
        oneof message_response {
          FileDescriptorResponse file_descriptor_response = 4;
          ExtensionNumberResponse all_extension_numbers_response = 5;
          ListServiceResponse list_services_response = 6;
          ErrorResponse error_response = 7;
        }
      }
      service ServerReflection {
        rpc ServerReflectionInfo (stream ServerReflectionRequest) returns (stream ServerReflectionResponse);
      }`,
  };
}

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
function typesOf(files: readonly ProtoFile[]): protobuf.Root {
  const root = new protobuf.Root();
  for (const { package: name, types } of files)
    protobuf.parse(`syntax = "proto3"; package ${name}; ${types}`, root, { keepCase: true });
  root.resolveAll();
  return root;
}

/** Decodes and encodes one type of message. */
interface MessageType {
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
