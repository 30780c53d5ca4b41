/** The orders that a test can send to the module inside a node. */
export type Order =
  | { readonly kind: 'stall'; readonly millis: number }
  | { readonly kind: 'wallClock'; readonly offsetMillis: number; readonly rate: number }
  | { readonly kind: 'monotonicRate'; readonly ppm: number };
