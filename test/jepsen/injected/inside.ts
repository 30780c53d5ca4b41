/**
 * Loaded into the node processes of a test before anything else. On orders over IPC it stalls the event loop and
 * changes the clocks. It also makes some ports unreachable. The product knows nothing of it.
 */
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Order } from './order.ts';

const realWall = Date.now.bind(Date);
const realMonotonic = performance.now.bind(performance);

let wallOffsetMillis = 0;
let wallRate = 1;
let wallSinceMillis = realWall();

let monotonicRate = 1;
let monotonicSinceMillis = realMonotonic();
let monotonicAtMillis = monotonicSinceMillis;

function monotonicMillis(): number {
  return monotonicAtMillis + (realMonotonic() - monotonicSinceMillis) * monotonicRate;
}

Date.now = () => {
  const now = realWall();
  return Math.round(now + wallOffsetMillis + (now - wallSinceMillis) * (wallRate - 1));
};
performance.now = monotonicMillis;

function obey(order: Order): void {
  switch (order.kind) {
    case 'stall': {
      const endMillis = realMonotonic() + order.millis;
      while (realMonotonic() < endMillis);
      return;
    }
    case 'wallClock':
      wallOffsetMillis = order.offsetMillis;
      wallRate = order.rate;
      wallSinceMillis = realWall();
      return;
    case 'monotonicRate':
      // Continues from the current value: this clock never jumps.
      monotonicAtMillis = monotonicMillis();
      monotonicSinceMillis = realMonotonic();
      monotonicRate = 1 + order.ppm / 1e6;
  }
}

/** A port without a listener. */
const NOWHERE = 1;
const unreachable = new Set((process.env['QUORATE_TEST_UNREACHABLE'] ?? '').split(',').map(Number));
// Nodes exchange their addresses, which would lead around the proxies. So connections to these addresses must fail.
const connect = net.connect.bind(net) as (options: net.TcpNetConnectOpts) => net.Socket;
net.connect = ((options: net.TcpNetConnectOpts) =>
  connect(unreachable.has(options.port) ? { ...options, port: NOWHERE } : options)) as typeof net.connect;
syncBuiltinESMExports();

const first = process.env['QUORATE_TEST_ORDERS'];
if (first !== undefined) for (const order of JSON.parse(first) as Order[]) obey(order);
process.on('message', (order) => obey(order as Order));
