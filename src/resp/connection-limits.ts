/** The limits of one connection: how much is kept for a client, and how long it may take. */

/** Above one of the first three limits, the client is not read. It is read again below half of all three. */
export interface ConnectionLimits {
  /** The most commands whose answers have not been sent. */
  readonly openMax: number;
  /** The most bytes of answers that the client has not read. */
  readonly unreadBytesMax: number;
  /**
   * The same for all clients together. A client that has read all its answers is still served, so that others cannot
   * shut it out.
   */
  readonly allUnreadBytesMax: number;
  /** The most bytes of unfinished commands of all clients. A client that exceeds it is disconnected. */
  readonly allUnfinishedBytesMax: number;
  /**
   * The time from the first byte of a command to its last, in milliseconds. A client that takes longer is
   * disconnected.
   */
  readonly commandMillisMax: number;
}
