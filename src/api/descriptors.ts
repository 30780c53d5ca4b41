/** The descriptors of a request: named values that say what the request is, such as its user, address or endpoint. */

/** The descriptor that `userId` is short for. */
export const USER = 'user';

/** Values by name: `user`, `ip`, `endpoint`, or any other name that the rules use. A `Map` is one. */
export interface Descriptors extends Iterable<readonly [name: string, value: string]> {
  readonly size: number;
  /** Undefined: the request has no such descriptor. An empty value counts as none. */
  get(name: string): string | undefined;
}

/**
 * The descriptors of a request that names only its user, as most requests do. A `Map` would take twelve times as much
 * memory.
 */
export class UserDescriptor implements Descriptors {
  readonly userId: string;

  constructor(userId: string) {
    this.userId = userId;
  }

  get size(): number {
    return 1;
  }

  get(name: string): string | undefined {
    return name === USER ? this.userId : undefined;
  }

  *[Symbol.iterator](): Generator<readonly [string, string]> {
    yield [USER, this.userId];
  }
}
