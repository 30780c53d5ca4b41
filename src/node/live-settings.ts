/** The settings that can change while a node runs. Users of a setting read it at every use. */
import { type HttpSettings, HTTP_SETTINGS_DEFAULTS } from '../config/http-settings.ts';
import type { ClusterConfig } from '../config/config.ts';
import { RLS_SETTINGS_DEFAULTS, type RlsSettings } from '../rls/rls-settings.ts';

type Source = Pick<ClusterConfig, 'http' | 'rls' | 'freeFloorBytes'>;

/** The current settings of one node. */
export class LiveSettings {
  #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  /** Replaces all settings. */
  replace(source: Source): void {
    this.#source = source;
  }

  readonly http = (): HttpSettings => this.#source.http ?? HTTP_SETTINGS_DEFAULTS;
  readonly rls = (): RlsSettings => this.#source.rls ?? RLS_SETTINGS_DEFAULTS;
  readonly freeFloorBytes = (): number => this.#source.freeFloorBytes;
}
