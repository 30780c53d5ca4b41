/**
 * Finds the mount of a directory in the text of /proc/self/mountinfo (proc_pid_mountinfo(5)), and whether deleting
 * files on it stalls the disk. Pure functions.
 */

/** A mounted file system. */
export interface Mount {
  /** The mount point. */
  readonly point: string;
  /** Type of the file system, such as `ext4`. */
  readonly type: string;
  /** The device, such as `/dev/sda1`. */
  readonly source: string;
  /** The options of the mount and of its file system. */
  readonly options: readonly string[];
}

/**
 * Returns the mount that a path is on, or undefined if the text names none.
 *
 * @param path absolute, without symbolic links
 */
export function mountOf(path: string, mountinfo: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mountinfo.split('\n')) {
    const mount = mountIn(line);
    if (mount === undefined || !isBelow(path, mount.point)) continue;
    // The later of two mounts at one point hides the earlier one.
    if (found === undefined || mount.point.length >= found.point.length) found = mount;
  }
  return found;
}

/**
 * Returns true if the kernel sends a discard to the disk for each freed block at once, which can stall synced writes.
 */
export function discardsAtOnce({ options }: Mount): boolean {
  // `discard=async` of btrfs sends them later, in small batches.
  return options.includes('discard') || options.includes('discard=sync');
}

/** Parses `id parent major:minor root point options [tags] - type source super-options`. */
function mountIn(line: string): Mount | undefined {
  const fields = line.split(' ');
  const dash = fields.indexOf('-', 6);
  const [, , , , point, own] = fields;
  const [type, source, shared] = dash === -1 ? [] : fields.slice(dash + 1);
  if (point === undefined || own === undefined || type === undefined || source === undefined)
    return undefined;
  const options = [...own.split(','), ...(shared ?? '').split(',')].filter((option) => option !== '');
  return { point: unescaped(point), type, source: unescaped(source), options };
}

/** Spaces, tabs, newlines and backslashes are written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}

function isBelow(path: string, point: string): boolean {
  return path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
}
