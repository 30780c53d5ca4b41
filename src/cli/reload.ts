/**
 * What a node does on SIGHUP: it reads its configuration again, takes over what it can, and says in its log, field by field, what
 * changed and what waits for a restart. A configuration that is wrong changes nothing.
 */
import { type Logger, pino } from 'pino';
import { type ClusterConfig, ConfigError, LOG_LEVEL_DEFAULT } from '../config/config.ts';
import { settingChanges, withLive } from '../config/setting-changes.ts';

/** The node, once it runs. */
interface Reconfigurable {
  readonly reconfigure: (config: ClusterConfig) => void;
}

export interface ReloaderInit {
  /** As the node started with it. */
  readonly config: ClusterConfig;
  /** Reads and checks it anew. @throws ConfigError */
  readonly read: () => Promise<ClusterConfig>;
  readonly logger: Logger;
  /** The command line said how much is logged: the configuration does not change that. */
  readonly isLevelStated: boolean;
}

function numberOf(level: string): number {
  return pino.levels.values[level] ?? 0;
}

export class Reloader {
  readonly #init: ReloaderInit;
  /** What the node goes by. */
  #running: ClusterConfig;
  #node: Reconfigurable | undefined;
  #isReading = false;
  /** It was asked for while it could not be done. */
  #isDue = false;

  constructor(init: ReloaderInit) {
    this.#init = init;
    this.#running = init.config;
  }

  /** From now on there is a node to reconfigure. */
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
      // What changes is said by the level that says more.
      if (numberOf(level) < numberOf(logger.level)) logger.level = level;
      for (const change of changes.live) logger.warn(change, 'a setting changed: in force from now on');
      for (const field of changes.atStart)
        logger.warn({ field }, 'a setting changed, which this node takes over when it is restarted');
      if (changes.live.length + changes.atStart.length === 0)
        logger.warn('the configuration was read again: nothing changed');
      if (isLevelStated && changes.live.some(({ field }) => field === 'logLevel'))
        logger.warn({ level }, 'logLevel: the level that the node was started with stays in force');
      logger.level = level;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const field = error instanceof ConfigError ? { field: error.field } : {};
      logger.error({ ...field, reason }, 'the configuration is of no use: nothing changed');
    }
  }
}
