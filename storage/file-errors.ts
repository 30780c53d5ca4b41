/**
 * What the operating system refuses of a file: which file it was, and what to do. Node names no path where a file that is open is
 * read, written, cut or synced. It decides nothing.
 */

/** By the code of an error, with LevelDB's words for it. */
const MEANINGS: Readonly<Record<string, { readonly words: string; readonly advice: string }>> = {
  ENOSPC: { words: 'No space left on device', advice: 'make room on its disk' },
  EDQUOT: {
    words: 'Disk quota exceeded',
    advice: 'raise the quota of the user that runs this, or make room',
  },
  EACCES: {
    words: 'Permission denied',
    advice: 'let the user that runs this read and write there, and search the folders above',
  },
  EPERM: { words: 'Operation not permitted', advice: 'let the user that runs this change it' },
  EROFS: {
    words: 'Read-only file system',
    advice: 'mount that file system for writing, or look in the log of the kernel why it went read-only',
  },
  EIO: {
    words: 'Input/output error',
    advice: 'look for errors of that disk in the log of the kernel (`dmesg`), and replace it',
  },
  EMFILE: { words: 'Too many open files', advice: 'raise the limit of open files (`ulimit -n`)' },
  ENFILE: {
    words: 'Too many open files in system',
    advice: 'raise the limit of open files (`sysctl fs.file-max`)',
  },
};

/** What to do about an error of the operating system, or of LevelDB, about a file. Undefined: it is another one. */
export function fileAdvice(error: Error): string | undefined {
  if (isSystemError(error)) return MEANINGS[error.code]?.advice;
  return Object.values(MEANINGS).find(({ words }) => error.message.endsWith(words))?.advice;
}

/** Runs `action`, whose errors of the operating system name `path` if they name none. */
export async function naming<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof Error && isSystemError(error) && error.path === undefined) {
      // In the words that Node has where it knows the path.
      error.message += ` '${path}'`;
      error.path = path;
    }
    throw error;
  }
}

function isSystemError(error: Error): error is Error & { readonly code: string; path?: string } {
  return 'syscall' in error && 'code' in error && typeof error.code === 'string';
}
