/**
 * Adds the path and advice to file errors of the operating system. Node omits the path when reading, writing,
 * truncating or syncing an open file fails.
 */

/** The known errors by code: `words` is the text in LevelDB's messages, `advice` what to do. */
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
    advice: 'mount that file system for writing, or read in the log of the kernel why it became read-only',
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

/** The advice for a file error of the operating system or of LevelDB; undefined for any other error. */
export function fileAdvice(error: Error): string | undefined {
  if (isSystemError(error)) return MEANINGS[error.code]?.advice;
  return Object.values(MEANINGS).find(({ words }) => error.message.endsWith(words))?.advice;
}

/** Runs `action` and adds `path` to its operating system errors if they have none. */
export async function naming<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof Error && isSystemError(error) && error.path === undefined) {
      // The format that Node uses when it knows the path.
      error.message += ` '${path}'`;
      error.path = path;
    }
    throw error;
  }
}

function isSystemError(error: Error): error is Error & { readonly code: string; path?: string } {
  return 'syscall' in error && 'code' in error && typeof error.code === 'string';
}
