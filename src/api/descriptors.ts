/** What a request says of itself: values by name. Plain data. */

/** What `userId` is short for. */
export const USER = 'user';

/** By name: `user`, `ip`, `endpoint`, or whatever the rules ask for. A `Map` is one. */
export interface Descriptors extends Iterable<readonly [name: string, value: string]> {
  readonly size: number;
  /** Undefined: the request does not say. A value of no letters is as good as none. */
  get(name: string): string | undefined;
}

/** The descriptors of a request that names only its user, as most do. A `Map` would take twelve times as much memory. */
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
