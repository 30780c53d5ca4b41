/** The health service and the reflection service. */
import { type ClientReadableStream, status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import descriptors from 'protobufjs/ext/descriptor/index.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HEALTH_CHECK, HEALTH_WATCH, NOT_SERVING, SERVING } from '../../src/grpc/health.ts';
import { messageType } from '../../src/grpc/protos.ts';
import { REFLECTION_VERSIONS, reflectionPath } from '../../src/grpc/reflection.ts';
import { RATE_LIMIT_SERVICE } from '../../src/grpc/should-rate-limit.ts';
import { eventually } from '../cluster/harness.ts';
import { asIs, type EnvoyClient, metadataOf } from './envoy-client.ts';
import { PlayedGrpc } from './fixtures.ts';

const HEALTH_REQUEST = messageType('grpc.health.v1.HealthCheckRequest');
const HEALTH_RESPONSE = messageType('grpc.health.v1.HealthCheckResponse');
const REFLECTION_REQUEST = messageType('grpc.reflection.v1.ServerReflectionRequest');
const REFLECTION_RESPONSE = messageType('grpc.reflection.v1.ServerReflectionResponse');
const SERVICE_UNKNOWN = 3;

let played: PlayedGrpc;
let client: EnvoyClient;

beforeEach(async () => {
  played = await PlayedGrpc.open({ watchersMax: 2 });
  client = played.client();
});
afterEach(async () => {
  await played.close();
});

/** A client built from the answer, as tools do. */
function rootOf(files: readonly unknown[]): protobuf.Root {
  const { fromDescriptor } = protobuf.Root as unknown as {
    readonly fromDescriptor: (set: { readonly file: readonly unknown[] }) => protobuf.Root;
  };
  const root = fromDescriptor({ file: files });
  root.resolveAll();
  return root;
}

async function check(service: string): Promise<unknown> {
  const answered = await client.bytes(HEALTH_CHECK, HEALTH_REQUEST.encode({ service }));
  return answered.bytes === undefined ? answered.code : HEALTH_RESPONSE.decode(answered.bytes)['status'];
}

function watch(service: string): {
  readonly reported: unknown[];
  readonly stream: ClientReadableStream<Buffer>;
} {
  const reported: unknown[] = [];
  const request = HEALTH_REQUEST.encode({ service });
  const stream = client.raw.makeServerStreamRequest(HEALTH_WATCH, asIs, asIs, request);
  stream.on('data', (bytes: Buffer) => reported.push(HEALTH_RESPONSE.decode(bytes)['status']));
  stream.on('error', (error: Error & { readonly code?: number }) => reported.push({ code: error.code }));
  return { reported, stream };
}

describe('health', () => {
  it('is serving while the node is ready and accepts clients', async () => {
    expect(await check('')).toBe(SERVING);
    expect(await check(RATE_LIMIT_SERVICE)).toBe(SERVING);
    // As probes of envoyproxy/ratelimit call it.
    expect(await check('ratelimit')).toBe(SERVING);
    expect(await check('other')).toBe(status.NOT_FOUND);
    played.wantsNoClients = true;
    expect(await check('')).toBe(NOT_SERVING);
    played.wantsNoClients = false;
    played.readiness = { status: 'waiting for leaders' };
    expect(await check('')).toBe(NOT_SERVING);
  });

  it('is sent to watches when it changes, until the listener is closed', async () => {
    const { reported } = watch('');
    const other = watch('other');
    await eventually('the first status', () => reported[0]);
    played.readiness = { status: 'stopping' };
    await eventually('a change', () => reported[1]);
    expect(reported).toEqual([SERVING, NOT_SERVING]);
    await eventually('the first status', () => other.reported[0]);
    expect(other.reported).toEqual([SERVICE_UNKNOWN]);
    const third = watch('');
    await eventually('a refusal', () => third.reported[0]);
    expect(third.reported).toEqual([{ code: status.RESOURCE_EXHAUSTED }]);
    await played.listener.close();
    await eventually('the end', () => reported[2]);
    expect(reported[2]).toEqual({ code: status.UNAVAILABLE });
  });

  it('forgets watches that ended', async () => {
    const watching = [watch(''), watch('')];
    for (const { reported } of watching) await eventually('the first status', () => reported[0]);
    for (const { stream } of watching) stream.cancel();
    const first = await eventually('room for another watch', async () => {
      const { reported, stream } = watch('');
      const word = await eventually('a status', () => reported[0]);
      stream.cancel();
      return word === SERVING ? word : undefined;
    });
    expect(first).toBe(SERVING);
  });
});

describe.each(REFLECTION_VERSIONS)('reflection %s', (version) => {
  function reflect(requests: readonly unknown[], token?: string): Promise<unknown[]> {
    return new Promise((resolve) => {
      const answers: unknown[] = [];
      const stream = client.raw.makeBidiStreamRequest(reflectionPath(version), asIs, asIs, metadataOf(token));
      stream.on('data', (bytes: Buffer) => answers.push(REFLECTION_RESPONSE.decode(bytes)));
      stream.on('error', (error: Error & { readonly code?: number }) => resolve([{ code: error.code }]));
      stream.on('end', () => resolve(answers));
      for (const request of requests)
        stream.write(REFLECTION_REQUEST.encode(request as Readonly<Record<string, unknown>>));
      stream.end();
    });
  }

  it('lists the services', async () => {
    expect(await reflect([{ list_services: '*' }])).toMatchObject([
      {
        list_services_response: {
          service: [
            { name: RATE_LIMIT_SERVICE },
            { name: 'grpc.health.v1.Health' },
            { name: 'grpc.reflection.v1.ServerReflection' },
            { name: 'grpc.reflection.v1alpha.ServerReflection' },
          ],
        },
      },
    ]);
  });

  it('returns the files of a service, from which a client can be built', async () => {
    const [answer] = (await reflect([{ file_containing_symbol: RATE_LIMIT_SERVICE }])) as {
      readonly file_descriptor_response: { readonly file_descriptor_proto: readonly Uint8Array[] };
    }[];
    const files = answer!.file_descriptor_response.file_descriptor_proto;
    const decoded = files.map(
      (bytes) => descriptors.FileDescriptorProto.decode(bytes) as unknown as Record<string, unknown>,
    );
    const names = decoded.map(({ name }) => name);
    for (const { dependency } of decoded)
      for (const name of (dependency as readonly string[] | undefined) ?? []) expect(names).toContain(name);
    const root = rootOf(decoded);
    const service = root.lookupService(RATE_LIMIT_SERVICE);
    expect(service.methods['ShouldRateLimit']?.resolvedRequestType?.fields['descriptors']?.id).toBe(2);
  });

  it('answers that any other service is unknown', async () => {
    const answers = await reflect([
      { file_by_filename: 'envoy/service/ratelimit/v3/rls.proto' },
      { file_by_filename: 'none.proto' },
      { file_containing_symbol: 'none.Such' },
      { file_containing_symbol: `${RATE_LIMIT_SERVICE}.ShouldRateLimit` },
      { all_extension_numbers_of_type: 'none.Such' },
    ]);
    expect(answers).toMatchObject([
      { file_descriptor_response: {} },
      { error_response: { error_code: status.NOT_FOUND } },
      { error_response: { error_code: status.NOT_FOUND } },
      { file_descriptor_response: {} },
      { error_response: { error_code: status.UNIMPLEMENTED } },
    ]);
  });

  it('needs a token once the cluster is closed, of any role', async () => {
    played.access.close();
    expect(await reflect([{ list_services: '*' }])).toEqual([{ code: status.UNAUTHENTICATED }]);
    expect(await reflect([{ list_services: '*' }], 'read-token')).toHaveLength(1);
  });
});
