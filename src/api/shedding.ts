/**
 * How a listener asks whether its node can take one more request. A request that it cannot take is refused at once,
 * as `overloaded` with `proposed` false.
 */

/** The number of open requests of one client. Only the load shedder changes it. */
export interface ClientLoad {
  open: number;
}

/** The load shedding functions of a node for its listeners. */
export interface SheddingApi {
  /**
   * Whether a request of `client` is refused now. A refusal is counted.
   *
   * @param client the id of its token, or its address if it has none
   * @param isLate the request waited unread while the node was busy. During such a time only requests that are
   *   answered quickly are admitted, and afterwards more only step by step.
   */
  refuses(client: string, isLate?: boolean): boolean;
  /** True if the node has no CPU time left: unread requests wait for the node, not for a disk or for the client. */
  readonly isBusy: boolean;
  /** Counts `requests` more open requests, until `left` is called with the result. */
  entered(client: string, requests: number): ClientLoad;
  left(load: ClientLoad, requests: number): void;
}

/** The load shedding functions for requests that other nodes forward. */
export interface SheddingOfForwarded {
  /** Whether one more forwarded request is refused. If not, it counts as open until `leftForwarded`. */
  maybeRefuseForwarded(): boolean;
  leftForwarded(): void;
}
