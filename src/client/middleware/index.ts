/** What every middleware of this package exports besides its own. */
export { type AddressOptions, clientAddress } from './address.ts';
export type { RequestFacts } from './facts.ts';
export { allOf, byApiKey, byIp, type ByIpOptions, byUser, firstOf, type Identifier } from './identify.ts';
export type { RateLimitOptions } from './limit.ts';
