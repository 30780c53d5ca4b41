/** The types with which a listener takes a heap snapshot or a CPU profile of its node, and the bounds of that. */

/** The shortest CPU profile, in seconds. */
export const CPU_PROFILE_SECONDS_MIN = 1;
/** The longest CPU profile, in seconds. */
export const CPU_PROFILE_SECONDS_MAX = 60;
/** The length of a CPU profile if the request names none, in seconds. */
export const CPU_PROFILE_SECONDS_DEFAULT = 10;

/** What an operator asks for. */
export type WantedDiagnosis =
  /** Blocks the event loop while it is taken. Contains every string in memory, including user ids and secrets. */
  | { readonly kind: 'heapSnapshot' }
  /** `seconds`: `CPU_PROFILE_SECONDS_MIN` to `CPU_PROFILE_SECONDS_MAX`. */
  | { readonly kind: 'cpuProfile'; readonly seconds: number };

/** A diagnosis in progress. */
export interface OpenDiagnosis {
  /** Starts when it is first read. Fails if the node stops before it is complete. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /**
   * The caller must call this, even if it read nothing. Calling it again is harmless. Only then can another diagnosis
   * start.
   */
  readonly close: () => void;
}

/** The diagnostic functions of a node. */
export interface DiagnosticsApi {
  /** Undefined: another diagnosis is in progress. */
  readonly diagnose: (wanted: WantedDiagnosis) => OpenDiagnosis | undefined;
}
