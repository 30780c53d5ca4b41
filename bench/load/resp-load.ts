/**
 * Closed-loop load over the Redis protocol: each connection has one pipeline on its way. In cluster-aware mode a
 * connection sends only keys that its node serves, like a client that has read `CLUSTER SLOTS`.
 */
import keySlot from 'cluster-key-slot';
import { type Workload, workloadOf } from '../workloads.ts';
import { type EncodedRequests, encodePipelines, meaningOf } from './encoded-requests.ts';
import type { Address, LoadResult, RespJob } from './load-job.ts';
import { type Counts, Measurement } from './measurement.ts';
import { RespConnection } from './resp-connection.ts';
import { readSlots, type SlotOwners } from './slot-owners.ts';

/** A node and the requests for it. */
interface Target {
  readonly address: Address;
  readonly requests: EncodedRequests;
}

async function targetsOf(job: RespJob, { chooser, requestsDrawn }: Workload): Promise<Target[]> {
  const { addresses, form, pipeline: depth } = job;
  const next = chooser(job.seed);
  const [first] = addresses;
  if (first === undefined) throw new RangeError('there is no address to send load to');
  if (!job.isClusterAware) {
    const requests = encodePipelines(next, form, { requests: requestsDrawn, depth });
    return addresses.map((address) => ({ address, requests }));
  }
  const owners: SlotOwners = await readSlots(first);
  const fraction = { requests: Math.ceil(requestsDrawn / owners.nodes.length), depth };
  return owners.nodes.map((address, node) => ({
    address,
    requests: encodePipelines(next, form, fraction, (key) => owners.ownerOf(keySlot(key)) === node),
  }));
}

function sumOf(connections: readonly RespConnection[]): Counts {
  const sum = { grants: 0, denials: 0, errors: 0 };
  for (const { counter } of connections) {
    sum.grants += counter.grants;
    sum.denials += counter.denials;
    sum.errors += counter.errors;
  }
  return sum;
}

/**
 * Runs the load.
 *
 * @param measuring called when the load is warm and counting begins
 * @throws if a connection ends, or an answer is not RESP
 */
export async function respLoad(job: RespJob, measuring: () => void): Promise<LoadResult> {
  const { form, connections, pipeline, workload } = job;
  const targets = await targetsOf(job, workloadOf(workload));
  const measurement = new Measurement({ ...job, measuring });
  const open: RespConnection[] = [];
  try {
    for (let i = 0; i < connections; i += 1) {
      const target = targets[i % targets.length];
      if (target === undefined) throw new RangeError('no node serves any slot');
      const { address, requests } = target;
      const connection = await RespConnection.open({
        address,
        token: job.token,
        requests,
        // Connections start at different places, so that they do not all ask for the same user at once.
        first: Math.floor((requests.pipelines * i) / connections),
        meaning: meaningOf(form, pipeline),
        depth: pipeline,
        latencies: () => measurement.latencies,
        failed: (error) => measurement.fail(error),
      });
      open.push(connection);
    }
    for (const connection of open) connection.send();
    return await measurement.run(() => sumOf(open));
  } finally {
    for (const connection of open) connection.close();
  }
}
