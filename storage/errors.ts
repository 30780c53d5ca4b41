/**
 * The errors of the store. Each class has a stable `code`; the message says what happened and what to do. A bug in the
 * caller is not here: that is an InvariantError from raft/assert.ts.
 */

import { fileAdvice } from './file-errors.ts';

/** The directory contains no complete database. Nothing was lost, because no node ever voted with it. */
export class StoreNotInitialisedError extends Error {
  readonly code = 'STORE_NOT_INITIALISED';

  constructor(directory: string, found: string) {
    super(
      `no database in ${directory}: ${found}. If this node is new, create its database once: \`quorate init\` for a ` +
        `new cluster, \`quorate join\` for a new node. If it has run before, its disk is missing or the path is wrong: ` +
        `never create a database under its old id, or it could vote twice in one term; a lost disk needs a new id.`,
    );
    this.name = 'StoreNotInitialisedError';
  }
}

/** Bootstrap was called for a directory that contains a database. */
export class StoreExistsError extends Error {
  readonly code = 'STORE_EXISTS';

  constructor(directory: string, file: string) {
    super(
      `refusing to create a database in ${directory}: it already contains ${file}. Start the node as it is, ` +
        `or choose an empty directory.`,
    );
    this.name = 'StoreExistsError';
  }
}

/** Another process, or another store in this process, has the directory open. */
export class StoreLockedError extends Error {
  readonly code = 'STORE_LOCKED';

  constructor(directory: string, options?: ErrorOptions) {
    super(
      `the database in ${directory} is in use by another process. Stop that process first; never delete the LOCK ` +
        `file: the lock does not depend on it.`,
      options,
    );
    this.name = 'StoreLockedError';
  }
}

/** The database belongs to another node or cluster, was created with other cluster facts, or has another format. */
export class ForeignStoreError extends Error {
  readonly code = 'STORE_FOREIGN';
  /** The name of the first field that differs. */
  readonly field: string;

  constructor(
    directory: string,
    { field, expected, found }: { readonly field: string; readonly expected: string; readonly found: string },
  ) {
    super(
      `the database in ${directory} was created with ${field} ${found}, but this node is configured with ${expected}: ` +
        `this never changes afterwards, so put the old value back into the configuration or check the directory`,
    );
    this.name = 'ForeignStoreError';
    this.field = field;
  }
}

/** The operating system refused to open the database. No damage is known; trying again is safe. */
export class StoreOpenError extends Error {
  readonly code = 'STORE_OPEN_FAILED';

  constructor(directory: string, reason: string, options?: ErrorOptions) {
    const advice = options?.cause instanceof Error ? fileAdvice(options.cause) : undefined;
    super(
      `cannot open the database in ${directory}: ${reason}. ` +
        `Before you start the node again, ${advice ?? 'check free space, permissions and the disk'}.`,
      options,
    );
    this.name = 'StoreOpenError';
  }
}

/** Synced data is missing or wrong. Final: the directory is marked and refused from now on. */
export class StorageDamageError extends Error {
  readonly code = 'STORAGE_DAMAGED';
  /** The damage, without the advice. */
  readonly damage: string;

  constructor(directory: string, damage: string, options?: ErrorOptions) {
    super(
      `the database in ${directory} is damaged: ${damage}. This node must not vote again with this directory: it ` +
        `may have forgotten a vote or a grant. Do not repair it and do not delete single files. Move the whole ` +
        `directory aside, remove this node from the cluster and add the machine again under a new node id with an ` +
        `empty directory; it will catch up from the others.`,
      options,
    );
    this.name = 'StorageDamageError';
    this.damage = damage;
  }
}

/** A write failed. Final for this process: the contents of the disk are unknown until the next start. */
export class StoreFailedError extends Error {
  readonly code = 'STORE_FAILED';

  constructor(options: ErrorOptions & { readonly cause: unknown }) {
    const { cause } = options;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = cause instanceof Error ? fileAdvice(cause) : undefined;
    super(
      `a write to the database failed: ${reason}. Nothing more may be sent or answered: ` +
        `${advice ?? 'check the disk and its free space'}, then start the process again.`,
      options,
    );
    this.name = 'StoreFailedError';
  }
}

/**
 * Thrown by the checks that find damage; they do not know the directory. openStore and LevelStore turn it into a
 * StorageDamageError, so it never leaves storage/.
 */
export class DamageFound extends Error {
  readonly code = 'DAMAGE_FOUND';

  constructor(damage: string, options?: ErrorOptions) {
    super(damage, options);
    this.name = 'DamageFound';
  }
}
