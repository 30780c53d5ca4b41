/** How an attempt ended, and the fields of one line of a history. It knows no kind of event. */
import { fieldsOf, HistoryError, numberOrNull, type OperationClass, textOrNull } from './history.ts';

/** How an attempt ended. All nanoseconds come from the one monotonic clock of the history. */
export interface Ending {
  readonly invokeNanos: number;
  /** When the client had its answer or gave up. */
  readonly completeNanos: number;
  /** The node that was asked. */
  readonly node: number;
  /**
   * The HTTP status or its equivalent: errors of the Redis protocol are 400, and 503 if the cluster could not decide.
   * 0: no answer.
   */
  readonly status: number;
  readonly class: OperationClass;
  readonly error: string | null;
}

/**
 * The checked fields of one line, or of an object in it. Its methods throw `HistoryError`, which names line and field.
 */
export class Line {
  readonly #fields: Record<string, unknown>;
  readonly #lineNumber: number;

  constructor(value: unknown, lineNumber: number) {
    this.#fields = fieldsOf(value);
    this.#lineNumber = lineNumber;
  }

  number(name: string): number {
    return numberOrNull(this.#fields[name]) ?? this.#refuse(name, 'a number');
  }

  numberOrNull(name: string): number | null {
    return numberOrNull(this.#fields[name]);
  }

  text(name: string): string {
    return textOrNull(this.#fields[name]) ?? this.#refuse(name, 'text');
  }

  textOrNull(name: string): string | null {
    return textOrNull(this.#fields[name]);
  }

  flagOrNull(name: string): boolean | null {
    const value = this.#fields[name];
    return typeof value === 'boolean' ? value : null;
  }

  oneOf<const T extends string>(name: string, values: readonly T[]): T {
    const value = values.find((each) => each === this.#fields[name]);
    return value ?? this.#refuse(name, `one of ${values.join(', ')}`);
  }

  lines(name: string): Line[] {
    const values = this.#fields[name];
    if (!Array.isArray(values)) return this.#refuse(name, 'a list');
    return values.map((value) => new Line(value, this.#lineNumber));
  }

  /** The object in the field, as a line of its own. Null: the field is missing. */
  lineOrNull(name: string): Line | null {
    const value = this.#fields[name];
    return value === null || value === undefined ? null : new Line(value, this.#lineNumber);
  }

  numbers(name: string): Record<string, number> {
    const values = fieldsOf(this.#fields[name]);
    const line = new Line(values, this.#lineNumber);
    return Object.fromEntries(Object.keys(values).map((key) => [key, line.number(key)]));
  }

  #refuse(name: string, wanted: string): never {
    const found = JSON.stringify(this.#fields[name]);
    throw new HistoryError(`line ${this.#lineNumber}: ${name} must be ${wanted}, but is ${found}`);
  }
}

/** Encodes the common ending fields of a line. */
export function encodeEnding({
  node,
  invokeNanos,
  completeNanos,
  status,
  class: outcome,
  error,
}: Ending): object {
  return { node, invoke_ns: invokeNanos, complete_ns: completeNanos, status, class: outcome, error };
}

export function endingIn(line: Line): Ending {
  return {
    invokeNanos: line.number('invoke_ns'),
    completeNanos: line.number('complete_ns'),
    node: line.number('node'),
    status: line.number('status'),
    class: line.oneOf('class', ['ok', 'fail', 'info']),
    error: line.textOrNull('error'),
  };
}
