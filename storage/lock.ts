/**
 * Allows one store per directory, across processes. This lock is taken before LevelDB is opened. It needs no file: the
 * kernel releases it when the process ends, and nobody can delete it by mistake.
 */
import { stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { StoreLockedError } from './errors.ts';
import { isErrno } from './files.ts';

/** A lock that is held. */
export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * The name of the abstract Unix socket (unix(7)) that stands for a directory. It contains the device and inode, so it
 * does not depend on the path. A path would not do: containers may share a network and use different directories under
 * the same path. Abstract names exist per network namespace, so between containers that share a volume but no network,
 * only LevelDB's own lock works.
 */
export async function lockName(directory: string): Promise<string> {
  // Inode numbers may exceed 2^53.
  const { dev, ino } = await stat(directory, { bigint: true });
  return `\0quorate-store-${dev}-${ino}`;
}

/**
 * Locks an existing directory. Does nothing on systems other than Linux: there only LevelDB's own lock works, which is
 * taken at open, after the first check of the files.
 *
 * @throws StoreLockedError
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

/** Whether a process holds the lock now. Always false on systems other than Linux, where this cannot be found out. */
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
