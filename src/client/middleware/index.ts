/** The exports of all middleware packages besides their own `rateLimit`. */
export { type AddressOptions, clientAddress } from './address.ts';
export type { RequestFacts } from './facts.ts';
export { allOf, byApiKey, byIp, type ByIpOptions, byUser, firstOf, type Identifier } from './identify.ts';
export type { RateLimitOptions } from './limit.ts';
