/** Measures failover: kills leaders again and again, and takes the time until the next leader grants a request. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address } from '../load/load-job.ts';
import { QuorateCluster } from '../peers/quorate-cluster.ts';
import { textFrom } from '../peers/metrics-text.ts';
import type { Running } from '../running.ts';
import { median } from '../statistics.ts';

const ASK_EVERY_MILLIS = 2;
const GIVE_UP_MILLIS = 10_000;
/** Pause in which leaders return to their nodes after a restart. */
const SETTLE_MILLIS = 1_500;

interface Granted {
  readonly status: number;
  readonly partition: number;
}

class Asker {
  readonly #agent = new Agent({ keepAlive: true });

  async ask({ host, port }: Address, userId: string): Promise<Granted> {
    const body = JSON.stringify({ userId });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const sent = request({ agent: this.#agent, host, port, path: '/v1/allow', method: 'POST', headers });
      sent.once('error', reject);
      sent.once('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('end', () => {
          const { decided } = JSON.parse(text) as { readonly decided?: { readonly partition: number } };
          resolve({ status: response.statusCode ?? 0, partition: decided?.partition ?? -1 });
        });
      });
      sent.end(body);
    });
  }

  /** Sends requests without waiting for answers. Resolves with the time of the first grant. */
  async firstGrant(address: Address, userId: string): Promise<number> {
    const controller = new AbortController();
    const granted = new Promise<number>((resolve) => {
      const askOnce = async (): Promise<void> => {
        const { status } = await this.ask(address, userId).catch(() => ({ status: 0 }));
        if (status === 200) resolve(performance.now());
      };
      const timer = setInterval(() => void askOnce(), ASK_EVERY_MILLIS);
      controller.signal.addEventListener('abort', () => clearInterval(timer));
    });
    const gaveUp = sleep(GIVE_UP_MILLIS, undefined, { signal: controller.signal }).then(
      () => {
        throw new Error(`no grant within ${GIVE_UP_MILLIS} ms`);
      },
      () => Number.NaN,
    );
    try {
      return await Promise.race([granted, gaveUp]);
    } finally {
      controller.abort();
    }
  }
}

async function leaderOf({ host, port }: Address, partition: number): Promise<number> {
  const report = JSON.parse(await textFrom(`http://${host}:${port}/v1/cluster`)) as {
    readonly partitions: readonly { readonly leader: number }[];
  };
  return report.partitions[partition]?.leader ?? 0;
}

export async function measureFailover(running: Running, kills: number): Promise<void> {
  const cluster = await QuorateCluster.start(running);
  const asker = new Asker();
  const millis: number[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    await sleep(SETTLE_MILLIS);
    const userId = `user-${kill}`;
    const [first] = cluster.http;
    if (first === undefined) throw new Error('a cluster has nodes');
    const { partition } = await asker.ask(first, userId);
    const victim = await leaderOf(first, partition);
    const survivor = cluster.config.nodes.find(({ id }) => id !== victim);
    if (victim === 0 || survivor === undefined) throw new Error(`partition ${partition} has no leader`);
    const killedMillis = performance.now();
    const dead = cluster.kill(victim);
    millis.push((await asker.firstGrant(survivor.http, userId)) - killedMillis);
    await dead;
    cluster.startNode(victim);
    await cluster.ready();
    process.stdout.write(`${Math.round(millis.at(-1) ?? 0)} `);
  }
  await cluster.stop();
  console.log(
    `\nfirst grant after SIGKILL of its leader, ${kills} times: median ${median(millis).toFixed(0)} ms, worst ${Math.max(...millis).toFixed(0)} ms`,
  );
}
