/** The outcome of one checker: what it counted, what it found, and whether that is a violation. */

/**
 * `unknown`: the checker could not decide, which never counts as `ok`. `skipped`: the run did not record what it needs.
 */
export type CheckStatus = 'ok' | 'violation' | 'unknown' | 'skipped';

export interface CheckResult {
  readonly name: string;
  readonly status: CheckStatus;
  /** The number of findings. Only the first few are reported in full. */
  readonly violations: number;
  readonly findings: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly note?: string;
}

const FINDINGS_REPORTED_MAX = 20;

/** Collects the findings of one checker. A broken run may have millions. */
export class Findings {
  readonly name: string;
  readonly #reported: string[] = [];
  #count = 0;
  readonly counts: Record<string, number> = {};

  constructor(name: string) {
    this.name = name;
  }

  get count(): number {
    return this.#count;
  }

  add(finding: string): void {
    this.#count += 1;
    if (this.#reported.length < FINDINGS_REPORTED_MAX) this.#reported.push(finding);
  }

  tally(what: string, by = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + by;
  }

  result(otherwise: Exclude<CheckStatus, 'violation'> = 'ok', note?: string): CheckResult {
    return {
      name: this.name,
      status: this.#count > 0 ? 'violation' : otherwise,
      violations: this.#count,
      findings: this.#reported,
      counts: this.counts,
      ...(note !== undefined && { note }),
    };
  }
}

export function skipped(name: string, note: string): CheckResult {
  return { name, status: 'skipped', violations: 0, findings: [], counts: {}, note };
}
