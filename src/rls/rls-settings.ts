/** The operator's settings for Envoy's rate limit protocol, over gRPC and as JSON: data, defaults and check. */
import { InvalidFieldError, objectAt } from '../api/fields.ts';

/** The settings. */
export interface RlsSettings {
  /** Responses contain `RateLimit-Limit`, `-Remaining` and `-Reset`, which the gateway adds to its own response. */
  readonly responseHeaders: boolean;
}

/** The defaults. */
export const RLS_SETTINGS_DEFAULTS: RlsSettings = { responseHeaders: false };

/** Checks `{"responseHeaders"?: boolean}`. @throws InvalidFieldError naming the field, below `path` */
export function validateRlsSettings(value: unknown, path: string): RlsSettings {
  const { responseHeaders = RLS_SETTINGS_DEFAULTS.responseHeaders } = objectAt(value, path, [
    'responseHeaders',
  ] satisfies (keyof RlsSettings)[]);
  if (typeof responseHeaders !== 'boolean')
    throw new InvalidFieldError(`${path}.responseHeaders`, 'must be true or false');
  return { responseHeaders };
}
