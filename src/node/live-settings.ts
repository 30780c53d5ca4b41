/** The settings that change while a node runs. Whoever goes by one of them asks for it at every use. */
import { type HttpSettings, HTTP_SETTINGS_DEFAULTS } from '../config/http-settings.ts';
import type { ClusterConfig } from '../config/config.ts';
import { RLS_SETTINGS_DEFAULTS, type RlsSettings } from '../rls/rls-settings.ts';

type Source = Pick<ClusterConfig, 'http' | 'rls' | 'freeFloorBytes'>;

export class LiveSettings {
  #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  replace(source: Source): void {
    this.#source = source;
  }

  readonly http = (): HttpSettings => this.#source.http ?? HTTP_SETTINGS_DEFAULTS;
  readonly rls = (): RlsSettings => this.#source.rls ?? RLS_SETTINGS_DEFAULTS;
  readonly freeFloorBytes = (): number => this.#source.freeFloorBytes;
}
