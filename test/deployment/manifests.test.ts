/**
 * Checks the deployment files. The compiler checks Kubernetes manifests against kubernetes-types (no unknown, missing
 * or mistyped field), and all files must fit the product's options, ports and paths.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { containerSettings } from '../../src/cli/container-settings.ts';
import { listeningAt } from '../../src/node/peer-addresses.ts';
import { ROOT } from '../cli/command.ts';
import { type Manifest, manifestsIn, mistakesIn } from './manifest-types.ts';

async function textOf(...path: readonly string[]): Promise<string> {
  return readFile(join(ROOT, ...path), 'utf8');
}

/** Checks a file. @param edited applies an operator's changes */
async function manifests(edited = (text: string): string => text): Promise<readonly Manifest[]> {
  return manifestsIn(edited(await textOf('cluster', 'kubernetes', 'quorate.yaml')));
}

/** Uncomments the lines for a restore. */
function restoring(text: string): string {
  return text.replace(
    /# (?=QUORATE_RESTORE_FROM:|- (?:\{ )?name: backup|  secret: \{ secretName: quorate-backup)/g,
    '',
  );
}

describe('the manifests of Kubernetes', () => {
  it('have the types of the published API', async () => {
    const all = await manifests();
    const changed = (change: (spec: object) => object): readonly Manifest[] =>
      all.flatMap((each) => {
        const { kind, spec } = each as Manifest & { readonly spec: object };
        return kind === 'StatefulSet' ? [{ ...each, spec: change(spec) }] : [];
      });
    const said = await mistakesIn({
      ours: all,
      restoring: await manifests(restoring),
      misspelt: changed((spec) => ({ ...spec, replica: 3 })),
      mistyped: changed((spec) => ({ ...spec, replicas: '3' })),
      incomplete: changed((spec) => ({ ...spec, selector: undefined })),
    });
    expect(said).toContain(`'"replica"' does not exist`);
    for (const wrong of ['misspelt', 'mistyped', 'incomplete']) expect(said).toContain(`${wrong}.ts(`);
    for (const right of ['ours', 'restoring']) expect(said).not.toContain(`${right}.ts(`);
    expect(all.map(({ kind }) => kind).sort()).toEqual(
      ['ConfigMap', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'StatefulSet'].sort(),
    );
  });

  it('give the container all environment variables and files that it needs', async () => {
    const all = await manifests();
    const { data } = all.find(({ kind }) => kind === 'ConfigMap') as unknown as {
      readonly data: Record<string, string>;
    };
    const pod = podOf(all);
    const [container] = pod.containers;
    const stated = Object.fromEntries(
      container?.env.map(({ name, value }) => [name, value?.replace('$(NAMESPACE)', 'ns')]) ?? [],
    );
    const settings = { ...data, ...stated, QUORATE_SETTINGS: '', HOSTNAME: 'quorate-2' };
    const { nodeId, addressOf, clusterId, foundingPort } = await containerSettings(settings);
    const { http, peer, resp, grpc } = addressOf(1);
    const services = all.filter(({ kind }) => kind === 'Service') as unknown as Service[];
    const [headless] = services.filter(({ spec }) => spec.clusterIP === 'None');
    expect([nodeId, clusterId]).toEqual([3, data['QUORATE_CLUSTER_ID']]);
    expect(http.host).toBe(`quorate-1.${headless?.metadata.name}.ns.svc.cluster.local`);
    // The variables of this container, with its own address.
    const { http: ownHttp, peer: ownPeer, resp: ownResp, grpc: ownGrpc } = listeningAt(addressOf(1), 'own');
    const own = [http, peer, resp, grpc].map((address) => ({ host: 'own', port: address?.port }));
    expect([ownHttp, ownPeer, ownResp, ownGrpc]).toEqual(own);
    const ports = [http.port, peer.port, resp?.port, grpc?.port, foundingPort];
    expect(container?.ports.map(({ containerPort }) => containerPort)).toEqual(ports);
    expect(headless?.spec.ports.map(({ port }) => port)).toEqual(ports);
    expect(headless?.spec.publishNotReadyAddresses).toBe(true);
    for (const { spec } of services) expect(spec.selector).toEqual(pod.labels);
    const forClients = [http.port, resp?.port, grpc?.port];
    const [forAll] = services.filter(({ spec }) => spec.clusterIP !== 'None');
    expect(forAll?.spec.ports.map(({ port }) => port)).toEqual(forClients);
    const { ingress } = (
      all.find(({ kind }) => kind === 'NetworkPolicy') as unknown as {
        readonly spec: { readonly ingress: readonly { readonly ports?: unknown }[] };
      }
    ).spec;
    expect(ingress.find(({ ports: open }) => open !== undefined)?.ports).toEqual(
      forClients.map((port) => ({ port })),
    );
  });

  it('mount a backup at the path of the variable, once the lines are uncommented', async () => {
    const all = await manifests(restoring);
    const { data } = all.find(({ kind }) => kind === 'ConfigMap') as unknown as {
      readonly data: Record<string, string>;
    };
    const { containers, volumes } = podOf(all);
    const mountPath = data['QUORATE_RESTORE_FROM'];
    expect(containers[0]?.volumeMounts).toContainEqual({ name: 'backup', mountPath, readOnly: true });
    expect(volumes.map(({ name }) => name)).toContain('backup');
    expect(podOf(await manifests()).volumes.map(({ name }) => name)).not.toContain('backup');
  });

  it('give a node only the permissions that it needs', async () => {
    const [container] = podOf(await manifests()).containers;
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(podOf(await manifests()).securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
  });
});

interface Service extends Manifest {
  readonly spec: {
    readonly clusterIP?: string;
    readonly publishNotReadyAddresses?: boolean;
    readonly selector: unknown;
    readonly ports: readonly { readonly port: number }[];
  };
}

interface Pod {
  readonly labels: unknown;
  readonly securityContext: unknown;
  readonly volumes: readonly { readonly name: string }[];
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value?: string }[];
    readonly ports: readonly { readonly containerPort: number }[];
    readonly volumeMounts: readonly object[];
    readonly securityContext: unknown;
  }[];
}

function podOf(all: readonly Manifest[]): Pod {
  const { spec } = all.find(({ kind }) => kind === 'StatefulSet') as unknown as {
    readonly spec: {
      readonly template: {
        readonly metadata: { readonly labels: unknown };
        readonly spec: Omit<Pod, 'labels'>;
      };
    };
  };
  return { ...spec.template.spec, labels: spec.template.metadata.labels };
}

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly environment?: Record<string, string>;
        readonly ports: readonly string[];
        readonly volumes: readonly string[];
        readonly read_only?: boolean;
      }
    >
  >;
  readonly volumes: Readonly<Record<string, unknown>>;
}

describe('the compose file', () => {
  it('has three containers that know each other, and mounts only existing files', async () => {
    const { services, volumes } = parse(await textOf('cluster', 'docker', 'compose.yaml'), {
      merge: true,
    }) as Compose;
    const nodes = Object.entries(services).filter(([name]) => name.startsWith('node-'));
    for (const [i, [name, node]] of nodes.entries()) {
      const settings = await containerSettings(node.environment ?? {});
      expect([settings.nodeId, settings.addressOf(i).http, node.read_only]).toEqual([
        i + 1,
        { host: name, port: 8_100 },
        true,
      ]);
      const { http, resp, grpc } = settings.addressOf(i);
      const inside = [http, resp, grpc].map((address) => address?.port);
      expect(node.ports.map((published) => Number(published.split(':').at(-1)))).toEqual(inside);
    }
    expect(nodes).toHaveLength(3);
    const sources = Object.values(services).flatMap(({ volumes: mounted }) =>
      mounted.map((mount) => mount.split(':')[0] ?? ''),
    );
    const isThere = (source: string): boolean =>
      source.startsWith('.')
        ? existsSync(join(ROOT, 'cluster', 'docker', source))
        : Object.hasOwn(volumes, source);
    expect(sources.filter((source) => !isThere(source))).toEqual([]);
  });

  it('makes Prometheus scrape all of them, as the job of the alerts', async () => {
    const { scrape_configs: scraped } = parse(await textOf('cluster', 'docker', 'prometheus.yml')) as {
      readonly scrape_configs: readonly {
        readonly job_name: string;
        readonly static_configs: readonly { readonly targets: string[] }[];
      }[];
    };
    expect(scraped.map(({ job_name: job, static_configs: [targets] }) => [job, targets?.targets])).toEqual([
      ['quorate', ['node-0:8100', 'node-1:8100', 'node-2:8100']],
    ]);
    expect(await textOf('cluster', 'observability', 'alerts.yaml')).toContain('up{job="quorate"}');
  });
});

describe('the image', () => {
  it('runs as an unprivileged user, copies only existing files, and names the version of its base', async () => {
    const lines = (await textOf('Dockerfile')).split('\n');
    const [last] = lines.filter((line) => line.startsWith('USER ')).slice(-1);
    expect(last).toBe('USER 1000:1000');
    const copied = lines
      .filter((line) => /^COPY (?!--from)/.test(line))
      .flatMap((line) => line.split(' ').slice(1, -1));
    const ignored = (await textOf('.dockerignore')).split('\n');
    expect(copied.filter((path) => !existsSync(join(ROOT, path)) || !ignored.includes(`!${path}`))).toEqual(
      [],
    );
    for (const line of lines.filter((each) => each.startsWith('FROM ')))
      expect(line).toMatch(/^FROM node:20\.\d+-/);
    const port = (text: string): boolean =>
      lines.some((line) => line.startsWith('EXPOSE') && line.includes(text));
    expect(['8100', '9100', '10100', '11100', '7100'].every(port)).toBe(true);
  });
});
