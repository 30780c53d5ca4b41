/** The sample configuration of Envoy: every field exists in Envoy, and the sample rules can be put in force. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { LOCAL_DEFAULTS, localAddress } from '../../src/config/cluster-directory.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { PROTO_ROOTS, ROOT } from './published.ts';

const SAMPLES = join(ROOT, 'cluster', 'envoy');
/** The types that the sample names. */
const PUBLISHED = [
  'envoy/config/bootstrap/v3/bootstrap.proto',
  'envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto',
  'envoy/extensions/filters/http/ratelimit/v3/rate_limit.proto',
  'envoy/extensions/filters/http/router/v3/router.proto',
  'envoy/extensions/upstreams/http/v3/http_protocol_options.proto',
  'envoy/extensions/transport_sockets/tls/v3/tls.proto',
];

interface Described {
  readonly key?: string;
  readonly rate_limit?: unknown;
  readonly descriptors?: readonly Described[];
}

type Fields = Readonly<Record<string, unknown>>;

let types: protobuf.Root;
let sample: Fields;
let text: string;

beforeAll(async () => {
  types = new protobuf.Root();
  types.resolvePath = (_, target) => {
    const found = PROTO_ROOTS.map((root) => join(root, target));
    return found.find((path) => existsSync(path)) ?? target;
  };
  await types.load(PUBLISHED, { keepCase: true });
  types.resolveAll();
  text = await readFile(join(SAMPLES, 'envoy.yaml'), 'utf8');
  sample = parse(text) as Fields;
});

/** The paths of fields that their types do not have. */
function unknownIn(value: unknown, type: protobuf.Type | undefined, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => unknownIn(item, type, `${path}[${i}]`));
  if (typeof value !== 'object' || value === null) return [];
  const fields = value as Fields;
  const named = fields['@type'];
  const known =
    typeof named === 'string' ? types.lookupType(named.replace('type.googleapis.com/', '')) : type;
  return Object.entries(fields).flatMap(([name, inner]) => {
    if (name === '@type') return [];
    const at = `${path}.${name}`;
    // A map of messages has names of its own.
    const field = known?.fields[name];
    if (known !== undefined && field === undefined) return [at];
    const resolved = field?.resolve().resolvedType;
    const innerType = resolved instanceof protobuf.Type ? resolved : undefined;
    if (!(field instanceof protobuf.MapField)) return unknownIn(inner, innerType, at);
    return Object.entries(inner as Fields).flatMap(([key, one]) => unknownIn(one, innerType, `${at}.${key}`));
  });
}

/** All fields with this name, at any depth. */
function allNamed(value: unknown, name: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(key === name ? [inner] : []),
    ...allNamed(inner, name),
  ]);
}

describe('the sample gateway', () => {
  it('has no field that Envoy does not have', () => {
    const bootstrap = types.lookupType('envoy.config.bootstrap.v3.Bootstrap');
    expect(unknownIn(sample, bootstrap, 'envoy')).toEqual([]);
    expect(unknownIn({ ...sample, static_resource: {} }, bootstrap, 'envoy')).toEqual([
      'envoy.static_resource',
    ]);
  });

  it('denies requests that no node can decide, and asks the nodes of a local cluster', () => {
    expect(allNamed(sample, 'failure_mode_deny')).toEqual([true]);
    const ports = [1, 2, 3].map((id) => localAddress(id, LOCAL_DEFAULTS.basePort).grpc?.port);
    expect(allNamed(sample, 'port_value')).toEqual(expect.arrayContaining(ports));
  });

  it('does not trust the addresses that its clients claim', () => {
    expect(allNamed(sample, 'use_remote_address')).toEqual([true]);
    expect(allNamed(sample, 'xff_num_trusted_hops')).toEqual([0]);
  });

  it('has a limit for each list of descriptors that it sends', async () => {
    const { descriptors } = parse(await readFile(join(SAMPLES, 'ratelimit.yaml'), 'utf8')) as Described;
    const keyOf = (action: Fields): string => {
      const { descriptor_key: key } = (action['request_headers'] ?? {}) as Fields;
      return typeof key === 'string' ? key : (Object.keys(action)[0] ?? '');
    };
    const lists = allNamed(sample, 'actions') as Fields[][];
    const sent = lists.map((actions) => actions.map(keyOf));
    expect(sent).toHaveLength(3);
    for (const keys of sent) {
      const found = keys.reduce<readonly Described[]>(
        (level, key) =>
          level.flatMap((each) => (each.descriptors ?? []).filter((inner) => inner.key === key)),
        [{ descriptors: descriptors ?? [] }],
      );
      expect(found.some(({ rate_limit: limit }) => limit !== undefined)).toBe(true);
    }
  });

  it('has limits that can be put in force, for the domain that it asks', async () => {
    const read = readRules(await readFile(join(SAMPLES, 'ratelimit.yaml'), 'utf8'));
    expect(read.kind).toBe('rules');
    if (read.kind !== 'rules') return;
    const domains = read.definitions.map(({ scope }) => (scope.kind === 'path' ? scope.domain : undefined));
    expect(new Set(domains)).toEqual(new Set(allNamed(sample, 'domain')));
  });
});
