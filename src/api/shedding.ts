/**
 * How doors ask whether a node can take one more request now. One that it cannot take is refused before it is asked for, as
 * `overloaded` with `proposed` false.
 */

/** The open requests of a client. Only who counts for it changes it. */
export interface ClientShare {
  open: number;
}

export interface SheddingBehindDoor {
  /**
   * Whether a request of `client` is refused now; it counts as refused then.
   *
   * @param client its token, or where it comes from while it has none
   * @param isLate it waited unread while the node was busy: only what is answered soon is let in then, and more only step by step after
   */
  refuses(client: string, isLate?: boolean): boolean;
  /** The node has no time left: what is sent and not read waits for it, not for a disk or for the client. */
  readonly isBusy: boolean;
  /** `requests` more of them are open, until `left` is told of what this returns. */
  entered(client: string, requests: number): ClientShare;
  left(share: ClientShare, requests: number): void;
}

/** The same of what other nodes forward. */
export interface SheddingOfForwarded {
  /** Whether one more is refused; if not, it is open until `leftForwarded`. */
  maybeRefuseForwarded(): boolean;
  leftForwarded(): void;
}
