/** The text that Prometheus reads, as far as the bench needs it. */

const ANSWER_MILLIS_MAX = 5_000;

/** @throws if it is not answered in time, or not with 200 */
export async function textFrom(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MILLIS_MAX) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.text();
}

/** The sum over all labels; 0 if there is no such metric. */
export function sumOfMetric(text: string, name: string): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const rest = line.slice(name.length);
    // A longer name begins alike.
    if (rest.startsWith(' ') || rest.startsWith('{')) sum += Number(rest.slice(rest.lastIndexOf(' ') + 1));
  }
  return sum;
}
