/** A raw connection to the HTTP listener: sends bytes, and collects the received ones. */
import { connect, type Socket } from 'node:net';

export class RawClient {
  readonly socket: Socket;
  received = '';
  isClosed = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isClosed = true;
    });
    this.socket.on('data', (bytes) => {
      this.received += bytes.toString();
    });
  }

  ask(userId: string): void {
    const body = JSON.stringify({ userId });
    const head = ['POST /v1/allow HTTP/1.1', 'host: a', 'content-type: application/json'];
    this.socket.write([...head, `content-length: ${body.length}`, '', body].join('\r\n'));
  }

  statuses(): string[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '');
  }
}
