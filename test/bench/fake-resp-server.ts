/** A fake server of the Redis protocol for tests of the load. A function of the test answers each command. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

/** Takes complete commands off the front of `text`. It trusts its input. */
function takeCommands(text: string): { readonly commands: string[][]; readonly rest: string } {
  const commands: string[][] = [];
  let rest = text;
  for (;;) {
    const head = /^\*(\d+)\r\n/.exec(rest);
    if (head === null) return { commands, rest };
    let at = head[0].length;
    const args: string[] = [];
    for (let i = 0; i < Number(head[1]); i += 1) {
      const length = /^\$(\d+)\r\n/.exec(rest.slice(at));
      if (length === null) return { commands, rest };
      const from = at + length[0].length;
      const to = from + Number(length[1]);
      if (rest.length < to + 2) return { commands, rest };
      args.push(rest.slice(from, to));
      at = to + 2;
    }
    commands.push(args);
    rest = rest.slice(at);
  }
}

export interface FakeServer {
  readonly address: { readonly host: string; readonly port: number };
  readonly server: Server;
}

export async function fakeRespServer(answer: (args: readonly string[]) => string): Promise<FakeServer> {
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      const { commands, rest } = takeCommands(text + chunk.toString('latin1'));
      text = rest;
      socket.write(commands.map(answer).join(''));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } };
}
