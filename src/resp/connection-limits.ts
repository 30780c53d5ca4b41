/** What is kept for one client, and how long it may take. Numbers only. */

/** Beyond one of the first three the client is not read; it is again below half of all. */
export interface ConnectionLimits {
  /** Commands without an answer that went out. */
  readonly openMax: number;
  /** Bytes of answers that the client has not taken. */
  readonly unreadBytesMax: number;
  /** The same of all clients together; whoever has taken all his answers is still served, so that others do not shut him out. */
  readonly allUnreadBytesMax: number;
  /** Of commands of all clients that are not finished: one beyond it ends its connection. */
  readonly allUnfinishedBytesMax: number;
  /** From the first byte of a command to its last: a client that takes longer is sent away. */
  readonly commandMillisMax: number;
}
