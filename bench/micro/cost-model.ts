/**
 * Splits the cost of a round into a fixed part, a part for each group and a part for each request. The parts are fitted
 * to measured rounds by least squares of the relative error, so that small rounds weigh as much as large ones.
 */

export interface MeasuredRound {
  readonly groups: number;
  readonly requestsPerGroup: number;
  readonly micros: number;
}

export interface RoundCost {
  readonly perRoundMicros: number;
  readonly perGroupMicros: number;
  readonly perRequestMicros: number;
}

/**
 * Solves a system of linear equations by Gaussian elimination with pivoting.
 *
 * @param rows each with the coefficients and the right-hand side
 * @throws RangeError if there is no unique solution
 */
function solve(rows: number[][]): number[] {
  const size = rows.length;
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0;
  for (let column = 0; column < size; column += 1) {
    const rest = rows.slice(column).sort((a, b) => Math.abs(b[column] ?? 0) - Math.abs(a[column] ?? 0));
    rows.splice(column, rest.length, ...rest);
    if (Math.abs(at(column, column)) < Number.EPSILON)
      throw new RangeError('the rounds do not differ enough to tell their costs apart');
    for (const [i, row] of rows.entries()) {
      if (i === column) continue;
      const factor = at(i, column) / at(column, column);
      rows[i] = row.map((value, j) => value - factor * at(column, j));
    }
  }
  return rows.map((row, i) => (row[size] ?? 0) / (row[i] ?? 1));
}

/**
 * Fits the costs.
 *
 * @param rounds at least three, with different numbers of groups and of requests
 * @throws RangeError if the rounds do not determine the costs
 */
export function fitRoundCost(rounds: readonly MeasuredRound[]): RoundCost {
  const normal = [0, 1, 2].map(() => [0, 0, 0, 0]);
  for (const { groups, requestsPerGroup, micros } of rounds) {
    // Dividing by the measured value makes the errors relative.
    const terms = [1, groups, groups * requestsPerGroup].map((term) => term / micros);
    for (const [i, row] of normal.entries()) {
      for (const [j, term] of terms.entries()) row[j] = (row[j] ?? 0) + (terms[i] ?? 0) * term;
      row[3] = (row[3] ?? 0) + (terms[i] ?? 0);
    }
  }
  const [perRoundMicros = 0, perGroupMicros = 0, perRequestMicros = 0] = solve(normal);
  return { perRoundMicros, perGroupMicros, perRequestMicros };
}
