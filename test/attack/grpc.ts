/** Attacks on the gRPC listener: without a token, with a wrong one, or with one of a lower role. */
import { credentials, status } from '@grpc/grpc-js';
import { messageType } from '../../src/grpc/protos.ts';
import { asIs, EnvoyClient, metadataOf } from '../grpc/envoy-client.ts';
import type { Attack, Outcome } from './attack.ts';
import type { Target } from './target.ts';

/** The protocol, written a second time, so that the test does not rely on the product's definition. */
const DECIDING = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const REFLECTING = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const REFUSALS: readonly (number | undefined)[] = [status.UNAUTHENTICATED, status.PERMISSION_DENIED];
const REQUEST = messageType('envoy.service.ratelimit.v3.RateLimitRequest').encode({
  domain: 'edge',
  descriptors: [{ entries: [{ key: 'user', value: 'eve' }] }],
});

async function atAllNodes(
  target: Target,
  tokens: readonly (string | undefined)[],
  call: (client: EnvoyClient, token: string | undefined) => Promise<number | undefined>,
): Promise<Outcome> {
  const gotIn: string[] = [];
  for (const id of target.cluster.ids) {
    const { port } = target.address(id, 'grpc');
    const client = new EnvoyClient(port, credentials.createSsl(Buffer.from(target.ca)));
    for (const token of tokens) {
      const code = await call(client, token);
      if (!REFUSALS.includes(code)) gotIn.push(`node ${id}: ${code ?? 'an answer'}`);
    }
    client.close();
  }
  return { tries: target.cluster.ids.length * tokens.length, gotIn };
}

async function decide(client: EnvoyClient, token: string | undefined): Promise<number | undefined> {
  return (await client.bytes(DECIDING, REQUEST, token)).code;
}

async function reflect(client: EnvoyClient, token: string | undefined): Promise<number | undefined> {
  return new Promise((resolve) => {
    const stream = client.raw.makeBidiStreamRequest(REFLECTING, asIs, asIs, metadataOf(token));
    stream.on('data', () => {});
    stream.on('error', (error: Error & { readonly code?: number }) => resolve(error.code));
    stream.on('end', () => resolve(undefined));
    stream.end();
  });
}

export const GRPC: readonly Attack[] = [
  {
    name: 'decisions for gateways, without a token of the role',
    listener: 'grpc',
    run: async (target) => {
      const { read, revoked } = target.tokens;
      return atAllNodes(target, [undefined, 'qt_wrong', read, revoked], decide);
    },
  },
  {
    name: 'reflection, without a token',
    listener: 'grpc',
    run: async (target) => atAllNodes(target, [undefined, 'qt_wrong', target.tokens.revoked], reflect),
  },
];
