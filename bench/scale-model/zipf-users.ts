/**
 * The users of the model. The k-th user sends requests in proportion to 1 / k^exponent, and gets at most
 * `limitPerSecond` grants. The client library remembers a denial until `retryAfter`, so only one denied request for
 * each wait reaches a node.
 */
export interface ZipfUsers {
  readonly users: number;
  readonly exponent: number;
  readonly limitPerSecond: number;
  /** How long a client sends no requests after a denial. */
  readonly waitSeconds: number;
}

export interface Reaching {
  readonly grantsPerSecond: number;
  /** Denials by nodes and by clients themselves. */
  readonly denialsPerSecond: number;
  readonly deniedByClientsPerSecond: number;
  /** Rate of the first user. All of it would reach one node if clients did not remember denials. */
  readonly hottestUserPerSecond: number;
}

/** Users up to this rank are summed one by one, the rest by an integral. */
const EXACT_USERS = 100_000;
const SLICES = 20_000;

export function reachingOf(requestsPerSecond: number, who: ZipfUsers): Reaching {
  const { users, exponent, limitPerSecond, waitSeconds } = who;
  const weight = (rank: number): number => rank ** -exponent;
  const total = sumOver(users, weight);
  const demand = (rank: number): number => (requestsPerSecond * weight(rank)) / total;
  const grantsPerSecond = sumOver(users, (rank) => Math.min(demand(rank), limitPerSecond));
  const isDenied = (rank: number): boolean => demand(rank) > limitPerSecond;
  const denialsPerSecond = sumOver(users, (rank) =>
    isDenied(rank) ? Math.min(demand(rank) - limitPerSecond, 1 / waitSeconds) : 0,
  );
  const deniedByClientsPerSecond = requestsPerSecond - grantsPerSecond - denialsPerSecond;
  return { grantsPerSecond, denialsPerSecond, deniedByClientsPerSecond, hottestUserPerSecond: demand(1) };
}

function sumOver(users: number, value: (rank: number) => number): number {
  const exact = Math.min(users, EXACT_USERS);
  let sum = 0;
  for (let rank = 1; rank <= exact; rank += 1) sum += value(rank);
  if (users <= exact) return sum;
  // The integral uses the middle of slices that grow with the rank.
  const ratio = (users / exact) ** (1 / SLICES);
  for (let from = exact, i = 0; i < SLICES; i += 1, from *= ratio)
    sum += value(from * Math.sqrt(ratio)) * from * (ratio - 1);
  return sum;
}
