/** One measured run of autocannon against a set of servers that share the connections. */
import autocannon from 'autocannon';

export interface Workload {
  readonly name: string;
  /** Base URLs; each gets an equal part of the connections. */
  readonly urls: readonly string[];
  /** The body of request `i`. */
  readonly body: (i: number) => { readonly userId: string; readonly rule?: string };
  readonly expectedStatus: number;
}

export interface Measurement {
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly p50Millis: number;
  readonly p99Millis: number;
  /** Answers with another status than the workload expects; they count as failures of the bench. */
  readonly unexpected: number;
}

export interface LoadOptions {
  readonly seconds: number;
  readonly connections: number;
}

export async function measure(workload: Workload, options: LoadOptions): Promise<Measurement> {
  const share = Math.max(1, Math.floor(options.connections / workload.urls.length));
  let next = 0;
  const results = await Promise.all(
    workload.urls.map(async (url) =>
      autocannon({
        url,
        connections: share,
        duration: options.seconds,
        requests: [
          {
            method: 'POST',
            path: '/v1/allow',
            headers: { 'content-type': 'application/json' },
            setupRequest: (request) => {
              next += 1;
              return { ...request, body: JSON.stringify(workload.body(next)) };
            },
          },
        ],
      }),
    ),
  );
  const total = results.reduce((sum, result) => sum + result.requests.total, 0);
  const expected = results.reduce(
    (sum, result) => sum + (result.statusCodeStats?.[`${workload.expectedStatus}`]?.count ?? 0),
    0,
  );
  return {
    name: workload.name,
    requestsPerSecond: results.reduce((sum, result) => sum + result.requests.average, 0),
    // Every server got the same number of connections; the slowest one is what a user may meet.
    p50Millis: Math.max(...results.map((result) => result.latency.p50)),
    p99Millis: Math.max(...results.map((result) => result.latency.p99)),
    unexpected: total - expected,
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
