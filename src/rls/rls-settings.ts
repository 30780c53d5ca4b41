/** What an operator may choose of Envoy's rate limit protocol, whatever carries it. Data, its defaults and its check. */
import { InvalidFieldError, objectAt } from '../api/fields.ts';

export interface RlsSettings {
  /** Answers carry `RateLimit-Limit`, `-Remaining` and `-Reset`, for the gateway to add to its response. */
  readonly responseHeaders: boolean;
}

export const RLS_SETTINGS_DEFAULTS: RlsSettings = { responseHeaders: false };

/** `{"responseHeaders"?: boolean}`. @throws InvalidFieldError naming the field, below `path` */
export function validateRlsSettings(value: unknown, path: string): RlsSettings {
  const { responseHeaders = RLS_SETTINGS_DEFAULTS.responseHeaders } = objectAt(value, path, [
    'responseHeaders',
  ] satisfies (keyof RlsSettings)[]);
  if (typeof responseHeaders !== 'boolean')
    throw new InvalidFieldError(`${path}.responseHeaders`, 'must be true or false');
  return { responseHeaders };
}
