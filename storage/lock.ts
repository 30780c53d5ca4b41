/**
 * One store per directory, across processes: our own lock, taken before LevelDB is touched. It needs no file: the
 * kernel frees it with the process, and nobody can delete it by mistake.
 */
import { stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { StoreLockedError } from './errors.ts';
import { isErrno } from './files.ts';

export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * The abstract Unix socket (unix(7)) that stands for a directory: for its device and inode, whatever path leads to it. A path
 * would not do: containers have directories of their own under one path, and may share a network. Abstract names are per
 * network namespace: between containers that share a volume, and no network, only LevelDB's own lock holds.
 */
export async function lockName(directory: string): Promise<string> {
  // Inodes may exceed what a number holds exactly.
  const { dev, ino } = await stat(directory, { bigint: true });
  return `\0quorate-store-${dev}-${ino}`;
}

/**
 * Locks an existing directory or throws StoreLockedError. Elsewhere than on Linux it does nothing: LevelDB's lock
 * is taken at open, after our first look at the files.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  if (process.platform !== 'linux') return { release: async () => {} };
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, await lockName(directory));
  } catch (error) {
    if (isErrno(error, 'EADDRINUSE')) throw new StoreLockedError(directory, { cause: error });
    throw error;
  }
  server.unref();
  return { release: () => close(server) };
}

/** Whether a process holds the lock now. Elsewhere than on Linux nobody can tell, and it is said that none does. */
export async function isLocked(directory: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const path = await lockName(directory);
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // `exclusive`: never share the socket with other workers of a node:cluster.
    server.listen({ path, exclusive: true }, resolve);
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
