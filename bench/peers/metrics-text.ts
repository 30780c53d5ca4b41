/** Reads single metrics from the Prometheus text format. */

const ANSWER_MILLIS_MAX = 5_000;

/** Fetches a text. @throws if the answer is late or not 200 */
export async function textFrom(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MILLIS_MAX) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.text();
}

/** Sums a metric over all its labels; 0 if there is no such metric. */
export function sumOfMetric(text: string, name: string): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const rest = line.slice(name.length);
    // Excludes metrics whose longer name starts the same.
    if (rest.startsWith(' ') || rest.startsWith('{')) sum += Number(rest.slice(rest.lastIndexOf(' ') + 1));
  }
  return sum;
}
