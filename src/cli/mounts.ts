/** Which mount a directory is on, and whether deleting files there stalls its disk: from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)). Pure. */

export interface Mount {
  /** Where it is mounted. */
  readonly point: string;
  /** Such as `ext4`. */
  readonly type: string;
  /** Such as `/dev/sda1`. */
  readonly source: string;
  /** Those of the mount, and those of its file system. */
  readonly options: readonly string[];
}

/** @param path absolute, without symbolic links. Undefined: the text names no mount that holds it. */
export function mountOf(path: string, mountinfo: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mountinfo.split('\n')) {
    const mount = mountIn(line);
    if (mount === undefined || !isBelow(path, mount.point)) continue;
    // The later one of two at one point hides the earlier.
    if (found === undefined || mount.point.length >= found.point.length) found = mount;
  }
  return found;
}

/** Whether the kernel tells the disk of each freed block at once, and may make synced writes wait for that. */
export function discardsAtOnce({ options }: Mount): boolean {
  // `discard=async` of btrfs tells later, and a few at a time.
  return options.includes('discard') || options.includes('discard=sync');
}

/** `id parent major:minor root point options [tags] - type source super-options`. */
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
