/**
 * The reload of a node on SIGHUP: it reads its configuration again, applies the settings that can change at run time,
 * and logs for each changed field whether it is in force or needs a restart. A wrong configuration changes nothing.
 */
import { type Logger, pino } from 'pino';
import { type ClusterConfig, ConfigError, LOG_LEVEL_DEFAULT } from '../config/config.ts';
import { settingChanges, withLive } from '../config/setting-changes.ts';

/** The running node. */
interface Reconfigurable {
  readonly reconfigure: (config: ClusterConfig) => void;
}

/** The configuration of the node and how to read it again. */
export interface ReloaderInit {
  /** The configuration at the start of the node. */
  readonly config: ClusterConfig;
  /** Reads and checks the configuration again. @throws ConfigError */
  readonly read: () => Promise<ClusterConfig>;
  readonly logger: Logger;
  /** The log level was set on the command line, so the configuration does not change it. */
  readonly isLevelStated: boolean;
}

function numberOf(level: string): number {
  return pino.levels.values[level] ?? 0;
}

/** Applies changes of the configuration to a running node, one reload at a time. */
export class Reloader {
  readonly #init: ReloaderInit;
  /** The configuration in force. */
  #running: ClusterConfig;
  #node: Reconfigurable | undefined;
  #isReading = false;
  /** A reload was requested while the node was starting or another reload was running. */
  #isDue = false;

  constructor(init: ReloaderInit) {
    this.#init = init;
    this.#running = init.config;
  }

  /** Sets the node to apply changes to. */
  runs(node: Reconfigurable): void {
    this.#node = node;
    if (this.#isDue) this.reload();
  }

  readonly reload = (): void => {
    this.#isDue = true;
    if (!this.#isReading && this.#node !== undefined) void this.#reloadAll(this.#node);
  };

  async #reloadAll(node: Reconfigurable): Promise<void> {
    this.#isReading = true;
    while (this.#isDue) {
      this.#isDue = false;
      await this.#reloadOnce(node);
    }
    this.#isReading = false;
  }

  async #reloadOnce(node: Reconfigurable): Promise<void> {
    const { read, logger, isLevelStated } = this.#init;
    try {
      const config = await read();
      const changes = settingChanges(this.#running, config);
      this.#running = withLive(this.#running, config);
      node.reconfigure(this.#running);
      const level = isLevelStated ? logger.level : (config.logLevel ?? LOG_LEVEL_DEFAULT);
      // Log the changes with the more verbose of the old and the new level.
      if (numberOf(level) < numberOf(logger.level)) logger.level = level;
      for (const change of changes.live) logger.warn(change, 'a setting changed: in force from now on');
      for (const field of changes.atStart)
        logger.warn({ field }, 'a setting changed: in force after a restart of this node');
      if (changes.live.length + changes.atStart.length === 0)
        logger.warn('the configuration was read again: nothing changed');
      if (isLevelStated && changes.live.some(({ field }) => field === 'logLevel'))
        logger.warn({ level }, 'logLevel: the level that the node was started with stays in force');
      logger.level = level;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const field = error instanceof ConfigError ? { field: error.field } : {};
      logger.error({ ...field, reason }, 'the configuration is invalid: nothing changed');
    }
  }
}
