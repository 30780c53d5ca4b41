/**
 * Certificates that may change while a node runs: their files are looked at now and then, and on request. New ones that are
 * right take the place of those in force; what is wrong is said once, and those in force stay. It touches no connection.
 */
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import {
  type CredentialChecks,
  type CredentialFiles,
  type Credentials,
  readCredentials,
} from './credentials.ts';

export interface LiveCredentialsInit extends Omit<CredentialChecks, 'nowMillis'> {
  readonly files: CredentialFiles;
  readonly logger: Logger;
  /** Of the time that certificates are valid in. */
  readonly wallMillis: () => number;
}

const DAY_MILLIS = 86_400_000;
/** From then on it is said once a day that it expires. */
const WARNED_MILLIS = 30 * DAY_MILLIS;

export class LiveCredentials {
  readonly #init: LiveCredentialsInit;
  readonly #listeners: ((credentials: Credentials) => void)[] = [];
  #current: Credentials;
  /** Of the files that were read last, right or wrong. */
  #read: string;
  /** Of the files at the last look. */
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

  /** @throws ConfigError if they are wrong */
  static async open(init: LiveCredentialsInit): Promise<LiveCredentials> {
    const stamp = await stampOf(init.files);
    return new LiveCredentials(init, await read(init), stamp);
  }

  /** As in `cluster.json`. */
  get setting(): string {
    return this.#init.setting;
  }

  get current(): Credentials {
    return this.#current;
  }

  /** Tells of every one that takes the place of another. */
  onReplaced(listener: (credentials: Credentials) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Reads the files if they changed since they were read, and have not since the last look: whoever replaces several is
   * between two of them for a moment. `isUrgent`: reads them now.
   */
  async look({ isUrgent = false } = {}): Promise<void> {
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
    try {
      this.#current = await read(this.#init);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ setting, reason }, 'a new certificate is of no use: the one before stays in force');
      return;
    }
    const until = new Date(this.#current.expiresMillis).toISOString();
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
        'a certificate expires: peers and clients refuse it then',
      );
    }
    if (isKeyShared)
      logger.warn(
        { setting, file: files.key },
        'others than its owner may read this private key: chmod 600 it',
      );
  }
}

function read({ files, wallMillis, ...checks }: LiveCredentialsInit): Promise<Credentials> {
  return readCredentials(files, { ...checks, nowMillis: wallMillis() });
}

/** Changes whenever a file is written or replaced. */
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
