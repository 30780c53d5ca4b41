/**
 * Certificates that may change while a node runs. The files are checked regularly and on request. If new files are
 * valid, they replace the current ones. Otherwise the error is logged once, and the current ones stay. Existing
 * connections are not touched.
 */
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import {
  type CredentialChecks,
  type CredentialFiles,
  type Credentials,
  readCredentials,
} from './credentials.ts';

/** What it is built from. */
export interface LiveCredentialsInit extends Omit<CredentialChecks, 'nowMillis'> {
  readonly files: CredentialFiles;
  readonly logger: Logger;
  /** The clock for the validity of certificates, in milliseconds since 1970. */
  readonly wallMillis: () => number;
}

const DAY_MILLIS = 86_400_000;
/** In this time before its expiry, a certificate is logged as expiring once a day. */
const WARNED_MILLIS = 30 * DAY_MILLIS;

/** One set of certificate files that may change. */
export class LiveCredentials {
  readonly #init: LiveCredentialsInit;
  readonly #listeners: ((credentials: Credentials) => void)[] = [];
  #current: Credentials;
  /** The stamp of the files that were read last, valid or not. */
  #read: string;
  /** The stamp of the files at the last check. */
  #seen: string;
  #warnedMillis = Number.NEGATIVE_INFINITY;
  #isBusy = false;

  private constructor(init: LiveCredentialsInit, current: Credentials, stamp: string) {
    this.#init = init;
    this.#current = current;
    this.#read = stamp;
    this.#seen = stamp;
    this.#warn();
  }

  /** Reads the files for the first time. @throws ConfigError if they are not valid */
  static async open(init: LiveCredentialsInit): Promise<LiveCredentials> {
    const stamp = await stampOf(init.files);
    return new LiveCredentials(init, await read(init), stamp);
  }

  /** The name of the setting in `cluster.json`. */
  get setting(): string {
    return this.#init.setting;
  }

  /** The certificates in force. */
  get current(): Credentials {
    return this.#current;
  }

  /** Calls `listener` with every certificate that replaces another. */
  onReplaced(listener: (credentials: Credentials) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Reads the files if they have changed since they were read, and are the same as at the previous check, because an
   * operator who replaces several files needs a moment. With `isUrgent` it reads them now.
   */
  async check({ isUrgent = false } = {}): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#warn();
      const stamp = await stampOf(this.#init.files);
      const isSettled = stamp === this.#seen;
      this.#seen = stamp;
      if (!isUrgent && (stamp === this.#read || !isSettled)) return;
      this.#read = stamp;
      await this.#replace();
    } finally {
      this.#isBusy = false;
    }
  }

  async #replace(): Promise<void> {
    const { setting, logger } = this.#init;
    const before = this.#current;
    try {
      this.#current = await read(this.#init);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ setting, reason }, 'the new certificate is not valid: the previous one stays in force');
      return;
    }
    const until = new Date(this.#current.expiresMillis).toISOString();
    if (isSame(before, this.#current)) {
      logger.info({ setting, until }, 'the certificate files were read again: nothing changed');
      return;
    }
    logger.info({ setting, until }, 'a new certificate is in force for new connections');
    this.#warnedMillis = Number.NEGATIVE_INFINITY;
    this.#warn();
    for (const listener of this.#listeners) listener(this.#current);
  }

  #warn(): void {
    const { setting, files, logger, wallMillis } = this.#init;
    const nowMillis = wallMillis();
    if (nowMillis - this.#warnedMillis < DAY_MILLIS) return;
    this.#warnedMillis = nowMillis;
    const { expiresMillis, isKeyShared } = this.#current;
    if (expiresMillis - nowMillis < WARNED_MILLIS) {
      const expires = new Date(expiresMillis).toISOString();
      logger.warn(
        { setting, file: files.cert, expires },
        'a certificate expires soon: peers and clients will refuse it',
      );
    }
    if (isKeyShared)
      logger.warn(
        { setting, file: files.key },
        'other users than its owner may read this private key: chmod 600 it',
      );
  }
}

/** Whether two readings found the same files. */
function isSame(a: Credentials, b: Credentials): boolean {
  return a.ca === b.ca && a.cert === b.cert && a.key === b.key;
}

function read({ files, wallMillis, ...checks }: LiveCredentialsInit): Promise<Credentials> {
  return readCredentials(files, { ...checks, nowMillis: wallMillis() });
}

/** A text that changes whenever a file is written or replaced. */
async function stampOf({ ca, cert, key }: CredentialFiles): Promise<string> {
  const stamps = [ca, cert, key].map(async (path) => {
    if (path === undefined) return '';
    const { ino, size, mtimeMs, ctimeMs } = await stat(path).catch(() => ({
      ino: 0,
      size: 0,
      mtimeMs: 0,
      ctimeMs: 0,
    }));
    return [ino, size, mtimeMs, ctimeMs].join(':');
  });
  return (await Promise.all(stamps)).join(' ');
}
