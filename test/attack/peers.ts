/**
 * Attacks on the peer port: by strangers, with a stolen node certificate, and by replaying an honest node's messages.
 */
import { createServer, connect as connectPlainly } from 'node:net';
import type { PeerMessage } from '../../raft/driver/peer-message.ts';
import { factsDigest, factsOf } from '../../src/config/cluster-facts.ts';
import { VERSIONS } from '../../src/api/versions.ts';
import { clusterTag, encodeFrame, type FrameType } from '../../src/wire/frame.ts';
import { encodeHello } from '../../src/wire/hello.ts';
import { encodePeerMessages } from '../../src/wire/peer-messages.ts';
import { Authority } from '../tls/authority.ts';
import type { Attack, Outcome } from './attack.ts';
import { type Address, type Credentials, Intruder, type OpenOptions } from './sockets.ts';
import type { Target } from './target.ts';

const CLOSED_MILLIS_MAX = 30_000;
const TERM = 1_000_000;

/** A correct hello of node `from` to node `to`. */
function hello(target: Target, from: number, to: number): Buffer {
  const { config } = target.cluster;
  const incarnation = config.founders.find(({ id }) => id === from)?.incarnation ?? '';
  const facts = factsDigest(factsOf(config));
  return encodeHello({ node: from, incarnation, target: to, facts, speaks: VERSIONS });
}

/** All kinds of messages to a node. */
function said(target: Target, from: number, to: number): Buffer {
  const { config } = target.cluster;
  const tag = clusterTag(config.clusterId);
  const groups = Array.from({ length: config.partitions + 1 }, (_, group) => group);
  const votes = encodePeerMessages(
    groups.flatMap((group): PeerMessage[] => [
      {
        kind: 'message',
        group,
        message: { type: 'vote', from, to, term: TERM, lastIndex: TERM, lastTerm: TERM, isTransfer: true },
      },
      { kind: 'message', group, message: { type: 'timeoutNow', from, to, term: TERM } },
    ]),
  );
  const junk = Buffer.from('{"add":{"id":66}}');
  const others: FrameType[] = [
    'requests',
    'answers',
    'status',
    'change',
    'changed',
    'capacity',
    'leaving',
    'usage',
  ];
  return Buffer.concat([
    encodeFrame('hello', hello(target, from, to), tag),
    ...votes.map((payload) => encodeFrame('peerMessages', payload, tag, VERSIONS.max)),
    ...others.map((type) => encodeFrame(type, junk, tag, VERSIONS.max)),
  ]);
}

/** An intrusion: the node did not close the connection. The checks after the attack find what it changed. */
async function say(address: Address, bytes: Buffer, options: OpenOptions): Promise<string | undefined> {
  const intruder = new Intruder(address, options);
  if (await intruder.opened(CLOSED_MILLIS_MAX)) intruder.say(bytes);
  const isClosed = await intruder.closed(CLOSED_MILLIS_MAX);
  intruder.leave();
  return isClosed ? undefined : 'the connection was not closed';
}

async function sayToAll(
  target: Target,
  options: OpenOptions,
  bytes: (to: number) => Buffer,
  rounds = 10,
): Promise<Outcome> {
  const gotIn: string[] = [];
  const { ids } = target.cluster;
  for (let round = 0; round < rounds; round += 1) {
    const all = await Promise.all(ids.map(async (to) => say(target.address(to, 'peer'), bytes(to), options)));
    gotIn.push(...all.flatMap((way, i) => (way === undefined ? [] : [`node ${ids[i]}: ${way}`])));
  }
  return { tries: rounds * ids.length, gotIn };
}

function otherThan(to: number): number {
  return to === 1 ? 2 : 1;
}

/** A CA of the attacker with the same names as the honest one. */
async function foreign(clusterId: string): Promise<Credentials> {
  const authority = await Authority.make(clusterId);
  try {
    const { credentials } = await authority.peer({ clusterId, nodeId: 1 });
    const { cert, key } = credentials.current;
    return { cert, key };
  } finally {
    await authority.remove();
  }
}

/** Bytes that an honest node sent after it connected, starting with its handshake. */
async function record(target: Target, from: number, to: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const recorder = createServer((client) => {
    const server = connectPlainly(target.address(to, 'peer'));
    for (const socket of [client, server]) socket.on('error', () => {});
    client.on('data', (bytes: Buffer) => {
      chunks.push(bytes);
      server.write(bytes);
    });
    server.on('data', (bytes) => client.write(bytes));
    server.on('close', () => client.destroy());
    client.on('close', () => server.destroy());
  });
  await new Promise<void>((resolve) => void recorder.listen(0, '127.0.0.1', resolve));
  const address = recorder.address() as { readonly port: number };
  const honest = new Intruder(
    { host: '127.0.0.1', port: address.port },
    { credentials: await target.certificateOf(from) },
  );
  await honest.opened(CLOSED_MILLIS_MAX);
  honest.say(encodeFrame('hello', hello(target, from, to), clusterTag(target.cluster.config.clusterId)));
  await honest.until(() => honest.heard !== '', CLOSED_MILLIS_MAX);
  honest.leave();
  recorder.close();
  return Buffer.concat(chunks);
}

export const PEERS: readonly Attack[] = [
  {
    name: 'forged hellos, votes and changes of the nodes, plainly',
    listener: 'peer',
    run: async (target) => sayToAll(target, { plain: true }, (to) => said(target, otherThan(to), to)),
  },
  {
    name: 'the same by TLS without a certificate',
    listener: 'peer',
    run: async (target) => sayToAll(target, {}, (to) => said(target, otherThan(to), to)),
  },
  {
    name: 'the same with a certificate of another CA',
    listener: 'peer',
    run: async (target) => {
      const credentials = await foreign(target.cluster.config.clusterId);
      return sayToAll(target, { credentials }, (to) => said(target, otherThan(to), to));
    },
  },
  {
    name: "the same as node 1, with node 3's certificate",
    listener: 'peer',
    run: async (target) =>
      sayToAll(target, { credentials: await target.certificateOf(3) }, (to) =>
        said(target, otherThan(to), to),
      ),
  },
  {
    name: 'a repeated handshake of an honest node',
    listener: 'peer',
    run: async (target) => {
      const recorded = await record(target, 3, 1);
      return sayToAll(target, { plain: true }, () => recorded);
    },
  },
];
