/**
 * Makes a node slow. It is loaded into the node before the node's own code (`--import`) and delays each write to other
 * nodes by some milliseconds. It also makes the disk seem full, so that the node follows and does not lead.
 */
import { Socket } from 'node:net';
import { createRequire, syncBuiltinESMExports } from 'node:module';

const delayMillis = Number(process.env['SLOW_FOLLOWER_MILLIS']);
const peerPorts = new Set((process.env['SLOW_FOLLOWER_PORTS'] ?? '').split(',').map(Number));

interface Writing {
  _writeGeneric: (this: Socket, ...args: unknown[]) => void;
}

const sockets = Socket.prototype as unknown as Writing;
const writeNow = sockets._writeGeneric;
sockets._writeGeneric = function (...args) {
  const isPeer = peerPorts.has(this.remotePort ?? 0) || peerPorts.has(this.localPort ?? 0);
  if (isPeer) setTimeout(() => writeNow.apply(this, args), delayMillis);
  else writeNow.apply(this, args);
};

const promises = createRequire(import.meta.url)('node:fs/promises') as {
  statfs: () => Promise<{ bavail: number; bsize: number }>;
};
promises.statfs = async () => ({ bavail: 0, bsize: 1 });
syncBuiltinESMExports();
