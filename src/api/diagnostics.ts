/** What an operator may take of the process of a node to see what it is doing: the wanted, its bounds, and the one who gives it. */

export const CPU_PROFILE_SECONDS_MIN = 1;
export const CPU_PROFILE_SECONDS_MAX = 60;
export const CPU_PROFILE_SECONDS_DEFAULT = 10;

export type WantedDiagnosis =
  /** Stops the event loop while it is taken. Holds every string in memory: ids of users, and secrets. */
  | { readonly kind: 'heapSnapshot' }
  /** `seconds` from `CPU_PROFILE_SECONDS_MIN` to `CPU_PROFILE_SECONDS_MAX`. */
  | { readonly kind: 'cpuProfile'; readonly seconds: number };

export interface OpenDiagnosis {
  /** Begins when it is first read. Ends with an error if the node stops before it is complete. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Must be called, once or more often, also where nothing was read: another one may be taken then. */
  readonly close: () => void;
}

export interface DiagnosticsBehindDoor {
  /** Undefined: another one is being taken. */
  readonly diagnose: (wanted: WantedDiagnosis) => OpenDiagnosis | undefined;
}
