/** The commands that clients send besides requests for a grant, with the answers that clients check. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Decoded } from './decode-replies.ts';
import { PlayedListener, type RespClient } from './fixtures.ts';

let played: PlayedListener;
let client: RespClient;

beforeEach(async () => {
  played = await PlayedListener.listening();
  client = played.client();
});

afterEach(() => played.stop());

function textOf(reply: Decoded): string {
  if (typeof reply !== 'string') throw new Error('the reply is no text');
  return reply;
}

/** The name of a node in `CLUSTER`. */
function nodeName(id: number): string {
  return String(id).padStart(40, '0');
}

describe('a command', () => {
  it('that is unknown is refused as Redis refuses it', async () => {
    expect(await client.ask('FOO')).toEqual({
      error: "ERR unknown command 'FOO', with args beginning with: ",
    });
    expect(await client.ask('foo', 'a', 'b c')).toEqual({
      error: "ERR unknown command 'foo', with args beginning with: 'a' 'b c' ",
    });
    expect(await client.ask('CONFIG', 'SET', 'save', '')).toEqual({
      error: "ERR unknown subcommand 'SET'. Try COMMAND DOCS CONFIG.",
    });
  });

  it('that is unknown is refused with the first of its arguments', async () => {
    const reply = await client.ask('x'.repeat(4_000), ...Array.from({ length: 60 }, () => 'y'.repeat(4_000)));
    expect(reply).toMatchObject({ error: expect.stringMatching(/^ERR unknown command 'x{128}', with/) });
    expect(JSON.stringify(reply).length).toBeLessThan(400);
  });

  it.each([
    [['ECHO'], 'echo'],
    [['PING', 'a', 'b'], 'ping'],
    [['SELECT'], 'select'],
    [['CLIENT', 'SETNAME'], 'client|setname'],
    [['CLIENT'], 'client'],
    [['CLUSTER', 'SLOTS', 'x'], 'cluster|slots'],
  ])('with a wrong number of arguments is refused: %j', async (args, name) => {
    expect(await client.ask(...args)).toEqual({
      error: `ERR wrong number of arguments for '${name}' command`,
    });
  });

  it('may be an inline command', async () => {
    client.socket.write('ping\r\nECHO "a b"\nPING hello\n');
    expect(await client.next(3)).toEqual(['PONG', 'a b', 'hello']);
  });
});

describe('HELLO', () => {
  const about = { server: 'quorate', version: '1.2.3', id: 1, mode: 'cluster', role: 'master', modules: [] };

  it('describes the server, in the requested version', async () => {
    expect(await client.ask('HELLO')).toEqual(
      Object.entries({ ...about, proto: 2 })
        .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b))
        .flat(),
    );
    expect(await client.ask('HELLO', '3')).toEqual(new Map(Object.entries({ ...about, proto: 3 })));
    expect(await client.ask('CLIENT', 'GETNAME')).toBeNull();
    expect(client.received.toString()).toMatch(/_\r\n$/);
    expect(await client.ask('HELLO')).toBeInstanceOf(Map);
    expect(await client.ask('HELLO', '2')).toBeInstanceOf(Array);
  });

  const ORDER = ['server', 'version', 'proto', 'id', 'mode', 'role', 'modules'];

  it('accepts the user that needs no password, and a name', async () => {
    await client.ask('HELLO', '3', 'AUTH', 'default', 'secret', 'SETNAME', 'me');
    expect(await client.ask('CLIENT', 'GETNAME')).toBe('me');
  });

  it.each([
    [['4'], 'NOPROTO unsupported protocol version'],
    [['x'], 'ERR Protocol version is not an integer or out of range'],
    [['3', 'AUTH', 'ada', 'secret'], 'WRONGPASS invalid username-password pair or user is disabled.'],
    [['3', 'AUTH', 'default'], 'ERR syntax error'],
    [['3', 'SETNAME', 'a b'], 'ERR Client names cannot contain spaces, newlines or special characters.'],
    [['3', 'NAME'], 'ERR syntax error'],
  ])('changes nothing when it is refused: %j', async (args, error) => {
    expect(await client.ask('HELLO', ...args)).toEqual({ error });
    expect(await client.ask('HELLO')).toBeInstanceOf(Array);
    expect(await client.ask('CLIENT', 'GETNAME')).toBeNull();
  });
});

describe('a connection', () => {
  it('needs no password, and refuses one as Redis does', async () => {
    expect(await client.ask('AUTH', 'secret')).toMatchObject({
      error: expect.stringMatching(/^ERR AUTH <password> called without any password configured/),
    });
    expect(await client.ask('AUTH', 'default', 'secret')).toBe('OK');
    expect(await client.ask('AUTH', 'ada', 'secret')).toMatchObject({
      error: expect.stringMatching(/^WRONGPASS/),
    });
  });

  it('has one database', async () => {
    expect(await client.ask('SELECT', '0')).toBe('OK');
    expect(await client.ask('SELECT', '1')).toEqual({ error: 'ERR SELECT is not allowed in cluster mode' });
    expect(await client.ask('SELECT', 'x')).toEqual({ error: 'ERR invalid DB index' });
  });

  it('ends when its client quits, and ignores later commands', async () => {
    client.send('PING');
    client.send('QUIT');
    client.send('ALLOW', 'ada');
    await client.ended();
    expect(client.replies).toEqual(['PONG', 'OK']);
    expect(played.asked).toEqual([]);
  });

  it('is in its initial state after RESET', async () => {
    await client.ask('HELLO', '3', 'SETNAME', 'me');
    expect(await client.ask('RESET')).toBe('RESET');
    expect(await client.ask('CLIENT', 'GETNAME')).toBeNull();
    expect(client.received.toString()).toMatch(/\$-1\r\n$/);
  });

  it('accepts commands that change nothing here', async () => {
    for (const name of ['READONLY', 'READWRITE', 'ASKING']) expect(await client.ask(name)).toBe('OK');
  });

  it('has no keys to list', async () => {
    expect(await client.ask('DBSIZE')).toBe(0);
  });

  it('answers tools that grants are on disk', async () => {
    expect(await client.ask('CONFIG', 'GET', 'maxmemory')).toEqual([]);
    expect(await client.ask('CONFIG', 'GET', 'save')).toEqual(['save', '']);
    await client.ask('HELLO', '3');
    const both = new Map(Object.entries({ save: '', appendonly: 'yes' }));
    expect(await client.ask('config', 'get', 'SAVE', 'appendonly')).toEqual(both);
  });
});

describe('CLIENT', () => {
  it('keeps the names that a client sets', async () => {
    expect(await client.ask('CLIENT', 'ID')).toBe(1);
    expect(await client.ask('client', 'setname', 'me')).toBe('OK');
    expect(await client.ask('CLIENT', 'SETINFO', 'lib-name', 'redis-x(y)')).toBe('OK');
    expect(await client.ask('CLIENT', 'SETINFO', 'LIB-VER', '1.2')).toBe('OK');
    const info = await client.ask('CLIENT', 'INFO');
    expect(info).toMatch(
      /^id=1 addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ name=me age=\d+ idle=0 .*cmd=client .*lib-name=redis-x\(y\) lib-ver=1\.2\n$/,
    );
  });

  it('lists all connections', async () => {
    const other = played.client();
    expect(await other.ask('CLIENT', 'ID')).toBe(2);
    await client.ask('CLIENT', 'SETNAME', 'me');
    const list = textOf(await other.ask('CLIENT', 'LIST'));
    expect(list.trim().split('\n')).toHaveLength(2);
    expect(list).toContain('name=me ');
  });

  it('accepts subcommands that change nothing here, and refuses the others', async () => {
    expect(await client.ask('CLIENT', 'NO-EVICT', 'on')).toBe('OK');
    expect(await client.ask('CLIENT', 'NO-TOUCH', 'OFF')).toBe('OK');
    expect(await client.ask('CLIENT', 'NO-TOUCH', 'x')).toEqual({ error: 'ERR syntax error' });
    expect(await client.ask('CLIENT', 'REPLY', 'ON')).toBe('OK');
    expect(await client.ask('CLIENT', 'REPLY', 'OFF')).toMatchObject({
      error: expect.stringMatching(/^ERR /),
    });
    expect(await client.ask('CLIENT', 'SETINFO', 'LIB-NAME', 'a b')).toEqual({
      error: 'ERR lib-name cannot contain spaces, newlines or special characters.',
    });
    expect(await client.ask('CLIENT', 'SETINFO', 'x', 'y')).toEqual({ error: "ERR Unrecognized option 'x'" });
    expect(await client.ask('CLIENT', 'SETNAME', 'a\nb')).toMatchObject({
      error: expect.stringMatching(/^ERR Client names/),
    });
  });
});

describe('INFO', () => {
  it('has the requested sections, or all', async () => {
    const all = textOf(await client.ask('INFO'));
    for (const name of ['Server', 'Clients', 'Stats', 'Replication', 'Cluster', 'Keyspace']) {
      expect(all).toContain(`# ${name}\r\n`);
    }
    expect(await client.ask('INFO', 'everything')).toContain('# Keyspace\r\n');
    const some = textOf(await client.ask('INFO', 'server', 'CLUSTER'));
    expect(some).toMatch(
      /^# Server\r\nredis_version:\d+\.\d+\.\d+\r\nquorate_version:1\.2\.3\r\nredis_mode:cluster\r\n/,
    );
    expect(some).toContain('\r\n\r\n# Cluster\r\ncluster_enabled:1\r\n');
    expect(some).not.toContain('# Stats');
    expect(await client.ask('INFO', 'nothing')).toBe('');
  });

  it('counts connections and commands', async () => {
    await client.ask('ALLOW', 'ada');
    await client.ask('ALLOW', '');
    const stats = await client.ask('INFO', 'stats');
    for (const line of ['total_connections_received:1', 'total_commands_processed:3', 'quorate_granted:1']) {
      expect(stats).toContain(`${line}\r\n`);
    }
  });
});

describe('COMMAND', () => {
  it('describes every command in ten columns', async () => {
    const all = await client.ask('COMMAND');
    expect(await client.ask('COMMAND', 'COUNT')).toBe((all as unknown[]).length);
    expect(await client.ask('COMMAND', 'INFO')).toEqual(all);
    for (const row of all as unknown[]) expect(row).toHaveLength(10);
    const [allow, none] = (await client.ask('COMMAND', 'INFO', 'allow', 'none')) as unknown[];
    expect(allow).toEqual(['allow', -2, ['write', 'fast'], 1, 1, 1, [], [], [], []]);
    expect(none).toBeNull();
    expect(await client.ask('COMMAND', 'LIST')).toContain('cl.throttle');
  });

  it('documents the commands', async () => {
    await client.ask('HELLO', '3');
    const docs = await client.ask('COMMAND', 'DOCS', 'client', 'none');
    expect(docs).toEqual(new Map([['client', expect.any(Map)]]));
    const all = await client.ask('COMMAND', 'DOCS');
    expect((all as Map<unknown, unknown>).size).toBe(await client.ask('COMMAND', 'COUNT'));
  });

  it('finds the keys of a command', async () => {
    expect(await client.ask('COMMAND', 'GETKEYS', 'ALLOW', 'ada', 'COST', '1')).toEqual(['ada']);
    expect(await client.ask('COMMAND', 'GETKEYS', 'PING')).toEqual({
      error: 'ERR The command has no key arguments',
    });
    expect(await client.ask('COMMAND', 'GETKEYS', 'GET', 'x')).toEqual({
      error: 'ERR Invalid command specified',
    });
    expect(await client.ask('COMMAND', 'GETKEYS', 'ALLOW')).toEqual({
      error: 'ERR Invalid number of arguments specified for command',
    });
  });
});

describe('CLUSTER', () => {
  const one = ['127.0.0.1', 10_101, nodeName(1), []];
  const two = ['127.0.0.1', 10_102, nodeName(2), []];

  it('returns the known leaders of slots', async () => {
    expect(await client.ask('CLUSTER', 'SLOTS')).toEqual([
      [0, 8_191, one],
      [8_192, 12_287, two],
    ]);
  });

  it('omits leaders without a RESP listener', async () => {
    const [first, ...others] = played.report.partitions;
    if (first === undefined) throw new Error('there is a partition');
    played.report = { ...played.report, partitions: [{ ...first, leader: 3 }, ...others] };
    expect(await client.ask('CLUSTER', 'SLOTS')).toEqual([
      [4_096, 8_191, one],
      [8_192, 12_287, two],
    ]);
  });

  it('returns IPv6 addresses without brackets, as Redis does', async () => {
    const [first, ...others] = played.report.nodes;
    if (first === undefined) throw new Error('there is a node');
    played.report = { ...played.report, nodes: [{ ...first, resp: '[::1]:10101' }, ...others] };
    expect(await client.ask('CLUSTER', 'SLOTS')).toEqual([
      [0, 8_191, ['::1', 10_101, nodeName(1), []]],
      [8_192, 12_287, two],
    ]);
    expect(await client.ask('CLUSTER', 'NODES')).toContain(' ::1:10101@0 myself');
  });

  it('returns shards', async () => {
    await client.ask('HELLO', '3');
    const shards = await client.ask('CLUSTER', 'SHARDS');
    expect(shards).toMatchObject([
      new Map<string, unknown>([
        ['slots', [0, 8_191]],
        ['nodes', [expect.any(Map)]],
      ]),
      new Map<string, unknown>([
        ['slots', [8_192, 12_287]],
        ['nodes', [expect.any(Map)]],
      ]),
    ]);
  });

  it('returns one line per node', async () => {
    expect(await client.ask('CLUSTER', 'NODES')).toBe(
      `${nodeName(1)} 127.0.0.1:10101@0 myself,master - 0 0 7 connected 0-8191\n` +
        `${nodeName(2)} 127.0.0.1:10102@0 master - 0 0 7 connected 8192-12287\n`,
    );
  });

  it('reports if all slots have a leader', async () => {
    const info = await client.ask('CLUSTER', 'INFO');
    for (const line of ['cluster_state:fail', 'cluster_slots_assigned:12288', 'cluster_size:2'])
      expect(info).toContain(`${line}\r\n`);
    const led = played.report.partitions.map((each) => ({ ...each, leader: 1 }));
    played.report = { ...played.report, partitions: led };
    expect(await client.ask('CLUSTER', 'INFO')).toContain('cluster_state:ok\r\n');
    expect(await client.ask('CLUSTER', 'MYID')).toBe(nodeName(1));
  });

  it('computes slots', async () => {
    expect(await client.ask('CLUSTER', 'KEYSLOT', '{foo}.bar')).toBe(12_182);
    expect(await client.ask('CLUSTER', 'COUNTKEYSINSLOT', '16383')).toBe(0);
    expect(await client.ask('CLUSTER', 'COUNTKEYSINSLOT', '16384')).toEqual({ error: 'ERR Invalid slot' });
    expect(await client.ask('CLUSTER', 'FAILOVER')).toMatchObject({
      error: expect.stringMatching(/^ERR unknown subcommand 'FAILOVER'/),
    });
  });
});
