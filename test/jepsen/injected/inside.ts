/**
 * Imported into the node processes of a test before anything else: stalls the event loop and changes the clocks
 * when told over IPC, and has some ports lead nowhere. Nothing in the product knows of it.
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
      // Goes on from where it is: this clock never jumps.
      monotonicAtMillis = monotonicMillis();
      monotonicSinceMillis = realMonotonic();
      monotonicRate = 1 + order.ppm / 1e6;
  }
}

/** Where nobody listens. */
const NOWHERE = 1;
const unreachable = new Set((process.env['QUORATE_TEST_UNREACHABLE'] ?? '').split(',').map(Number));
// Nodes tell each other where they are: a way around the proxies, if it led anywhere.
const connect = net.connect.bind(net) as (options: net.TcpNetConnectOpts) => net.Socket;
net.connect = ((options: net.TcpNetConnectOpts) =>
  connect(unreachable.has(options.port) ? { ...options, port: NOWHERE } : options)) as typeof net.connect;
syncBuiltinESMExports();

const first = process.env['QUORATE_TEST_ORDERS'];
if (first !== undefined) for (const order of JSON.parse(first) as Order[]) obey(order);
process.on('message', (order) => obey(order as Order));
