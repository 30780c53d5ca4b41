/**
 * Renders the Helm chart: its output must fit the published API types for all values, and the plain manifest must equal
 * the output for the defaults. After a change of the chart `REWRITE_MANIFEST=1 npx vitest run
 * test/deployment/chart.test.ts` rewrites the manifest.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { containerSettings } from '../../src/cli/container-settings.ts';
import { ran, ROOT } from '../cli/command.ts';
import { helmProgram, linted, rendered, type Rendering } from './helm.ts';
import { type Manifest, manifestsIn, mistakesIn } from './manifest-types.ts';

const MANIFEST = join(ROOT, 'cluster', 'kubernetes', 'quorate.yaml');
const HEADER = `# A cluster of three nodes, closed and with TLS: the output of the chart in helm/quorate for its default values, for use without Helm. Before it
# is applied: a namespace, the secret \`quorate\` and an image of your own, as docs/operate/kubernetes.md says. \`kubectl apply -n quorate -f quorate.yaml\`
# This file is written by a command: change the chart, then run REWRITE_MANIFEST=1 npx vitest run test/deployment/chart.test.ts
`;
const RULES = { rules: [{ id: 'default', windows: { limit: 5, per: 'minute' } }] };

const helm = (await helmProgram()) ?? '';
if (helm === '')
  console.log('skipped: there is no helm here, nor its path in HELM, and none for this machine in npm');

/** The rendered text without the names of the templates, as the repository keeps it. */
async function plain(): Promise<string> {
  const text = await rendered(helm, {});
  return HEADER + text.replaceAll(/^---\n# Source: .*\n/gm, '---\n').replace(/^---\n/, '');
}

async function made(rendering: Rendering): Promise<readonly Manifest[]> {
  return manifestsIn(await rendered(helm, rendering));
}

function only(all: readonly Manifest[], kind: string, name?: string): unknown {
  const found = all.filter(
    (each) => each.kind === kind && (name === undefined || each.metadata.name === name),
  );
  expect(found).toHaveLength(1);
  return found[0];
}

interface StatefulSet {
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly metadata: { readonly annotations?: Record<string, string> };
      readonly spec: {
        readonly containers: readonly {
          readonly image: string;
          readonly resources: unknown;
          readonly env: readonly { readonly name: string; readonly value?: string }[];
          readonly startupProbe: { readonly httpGet: { readonly scheme: string } };
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        }[];
        readonly volumes: readonly { readonly name: string }[];
        readonly affinity: { readonly podAntiAffinity: object };
        readonly topologySpreadConstraints: readonly { readonly whenUnsatisfiable: string }[];
      };
    };
    readonly volumeClaimTemplates: readonly { readonly spec: unknown }[];
  };
}

async function annotationsOf(values: Readonly<Record<string, unknown>>): Promise<unknown> {
  const { spec } = only(await made({ values }), 'StatefulSet') as StatefulSet;
  return spec.template.metadata.annotations;
}

const EVERYTHING = {
  image: { repository: 'registry.example/quorate', tag: '9.9.9', pullSecrets: ['pull'] },
  replicas: 5,
  partitions: 12,
  nodeIds: '1:1001',
  storage: { size: '50Gi', className: 'fast', accessMode: 'ReadWriteOnce' },
  resources: { requests: { cpu: '2', memory: '4Gi' }, limits: { memory: '4Gi' } },
  settings: { http: { userHeader: 'x-user-id' } },
  tokens: { secretName: 'quorate-tokens' },
  rules: RULES,
  spread: { hosts: 'preferred', zones: 'required' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'limits', operator: 'Exists' }],
  priorityClassName: 'high',
  restore: { claimName: 'monday' },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true, runbook: 'https://wiki.example/runbook.md' },
};

describe.skipIf(helm === '')('the chart', () => {
  it('passes helm lint', async () => {
    expect(await linted(helm)).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  it('renders the plain manifest from its defaults', async () => {
    const text = await plain();
    if (process.env['REWRITE_MANIFEST'] !== undefined) await writeFile(MANIFEST, text);
    expect(await readFile(MANIFEST, 'utf8')).toBe(text);
  });

  it('has the types of the published APIs, for all values', async () => {
    const everything = await made({ release: 'limits', values: EVERYTHING });
    const monitor = only(everything, 'ServiceMonitor') as Manifest & { readonly spec: object };
    const rule = only(everything, 'PrometheusRule') as Manifest & { readonly spec: object };
    const said = await mistakesIn({
      defaults: await made({}),
      everything,
      open: await made({ values: { tls: false, secretName: '', founders: 1, replicas: 1 } }),
      restoring: await made({ values: { restore: { secretName: 'monday' } } }),
      monitors: [{ ...monitor, spec: { ...monitor.spec, endpoint: [] } } as Manifest],
      rules: [{ ...rule, spec: { groups: [{ name: 'x', rules: [{ alert: 1 }] }] } } as Manifest],
    });
    for (const wrong of ['monitors', 'rules']) expect(said).toContain(`${wrong}.ts(`);
    for (const right of ['defaults', 'everything', 'open', 'restoring'])
      expect(said).not.toContain(`${right}.ts(`);
    expect(new Set(everything.map(({ kind }) => kind))).toEqual(
      new Set([
        'ConfigMap',
        'Job',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'PrometheusRule',
        'Service',
        'ServiceMonitor',
        'StatefulSet',
      ]),
    );
    expect(everything.filter(({ metadata }) => !metadata.name.startsWith('limits'))).toEqual([]);
  });

  it('writes its values into the manifests', async () => {
    const all = await made({ release: 'limits', values: EVERYTHING });
    const { spec } = only(all, 'StatefulSet') as StatefulSet;
    const pod = spec.template.spec;
    const [container] = pod.containers;
    expect([spec.replicas, container?.image]).toEqual([5, 'registry.example/quorate:9.9.9']);
    expect(container?.resources).toEqual(EVERYTHING.resources);
    expect(spec.volumeClaimTemplates[0]?.spec).toEqual({
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'fast',
      resources: { requests: { storage: '50Gi' } },
    });
    expect(pod).toMatchObject({
      imagePullSecrets: [{ name: 'pull' }],
      nodeSelector: EVERYTHING.nodeSelector,
      tolerations: EVERYTHING.tolerations,
      priorityClassName: 'high',
    });
    expect(Object.keys(pod.affinity.podAntiAffinity)).toEqual([
      'preferredDuringSchedulingIgnoredDuringExecution',
    ]);
    expect(pod.topologySpreadConstraints.map((each) => each.whenUnsatisfiable)).toEqual(['DoNotSchedule']);
    expect(pod.volumes).toContainEqual({
      name: 'backup',
      persistentVolumeClaim: { claimName: 'monday', readOnly: true },
    });
    expect(container?.volumeMounts).toContainEqual({ name: 'backup', mountPath: '/backup', readOnly: true });
    const { data } = only(all, 'ConfigMap', 'limits') as { readonly data: Record<string, string> };
    const env = Object.fromEntries(container?.env.map(({ name, value = 'ns' }) => [name, value]) ?? []);
    const settings = await containerSettings({
      ...data,
      ...env,
      QUORATE_HOST: env['QUORATE_HOST']?.replace('$(NAMESPACE)', 'ns'),
      QUORATE_SETTINGS: '',
      HOSTNAME: 'limits-1',
    });
    expect(settings).toMatchObject({ nodeId: 1001, founders: 3, partitions: 12, restoreFrom: '/backup' });
    expect(settings.addressOf(0).http.host).toBe('limits-0.limits-nodes.ns.svc.cluster.local');
    expect(env['QUORATE_SETTINGS']).toBe('/secrets/settings.json,/settings/settings.json');
    const { data: local } = only(all, 'ConfigMap', 'limits-settings') as {
      readonly data: Record<string, string>;
    };
    expect(JSON.parse(local['settings.json'] ?? '')).toEqual(EVERYTHING.settings);
  });

  it('restarts pods when the settings change, and not otherwise', async () => {
    const one = await annotationsOf({ settings: { leaders: 'spread' } });
    expect(one).toEqual({ 'checksum/settings': expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await annotationsOf({ settings: { leaders: 'spread' }, replicas: 4 })).toEqual(one);
    expect(await annotationsOf({ settings: { leaders: 'gather' } })).not.toEqual(one);
    expect(await annotationsOf({})).toBeUndefined();
  });

  it('mounts no secret without TLS, and probes pods in plain HTTP', async () => {
    const { spec } = only(await made({ values: { tls: false } }), 'StatefulSet') as StatefulSet;
    const [container] = spec.template.spec.containers;
    expect(container?.startupProbe.httpGet.scheme).toBe('HTTP');
    expect(spec.template.spec.volumes.map(({ name }) => name)).toEqual(['tmp']);
    expect(container?.env.map(({ name }) => name)).not.toContain('QUORATE_SETTINGS');
  });

  it('has a job that applies the rules with a valid command line', async () => {
    const all = await made({ release: 'limits', values: EVERYTHING });
    const { spec, metadata } = only(all, 'Job') as Manifest & { readonly spec: StatefulSet['spec'] };
    const [container] = spec.template.spec.containers as unknown as readonly {
      readonly args: readonly string[];
    }[];
    expect(container?.args).toEqual([
      'rules',
      'apply',
      '/rules/rules.yaml',
      '--node',
      'https://limits.ns.svc.cluster.local:8100',
      '--ca',
      '/secrets/ca.crt',
    ]);
    expect(metadata.annotations?.['helm.sh/hook']).toBe('post-install,post-upgrade');
    const { data } = only(all, 'ConfigMap', 'limits-rules') as { readonly data: Record<string, string> };
    expect(parse(data['rules.yaml'] ?? '')).toEqual(RULES);
    expect(await ran(['rules', 'check', '-'], ROOT, data['rules.yaml'])).toMatchObject({ code: 0 });
    const asText = await made({ values: { ...EVERYTHING, rules: 'rules: []\n' } });
    expect((only(asText, 'ConfigMap', 'quorate-rules') as { readonly data: unknown }).data).toEqual({
      'rules.yaml': 'rules: []\n',
    });
  });

  it('makes Prometheus scrape each pod as the job of the alerts, and contains the alerts of alerts.yaml', async () => {
    const all = await made({ release: 'limits', values: EVERYTHING });
    const monitor = only(all, 'ServiceMonitor') as {
      readonly spec: {
        readonly jobLabel: string;
        readonly selector: { readonly matchLabels: Record<string, string> };
      };
    };
    const { jobLabel, selector } = monitor.spec;
    const scraped = all.filter(
      ({ kind, metadata: { labels = {} } }) =>
        kind === 'Service' &&
        Object.entries(selector.matchLabels).every(([name, value]) => labels[name] === value),
    );
    expect(scraped.map(({ metadata }) => [metadata.name, metadata.labels?.[jobLabel]])).toEqual([
      ['limits-nodes', 'quorate'],
    ]);
    expect(monitor).toMatchObject({
      metadata: { labels: { release: 'prometheus' } },
      spec: {
        endpoints: [
          {
            port: 'http',
            scheme: 'https',
            tlsConfig: {
              ca: { secret: { name: 'quorate', key: 'ca.crt' } },
              serverName: 'limits.ns.svc.cluster.local',
            },
            authorization: { credentials: { name: 'quorate-tokens', key: 'read' } },
          },
        ],
      },
    });
    const alerts = await readFile(join(ROOT, 'cluster', 'observability', 'alerts.yaml'), 'utf8');
    const { spec } = only(all, 'PrometheusRule') as { readonly spec: unknown };
    const linked = alerts.replaceAll('docs/operate/runbook.md', 'https://wiki.example/runbook.md');
    expect(spec).toEqual(parse(linked));
  });

  it.each<[Record<string, unknown>, string]>([
    [{ replica: 3 }, 'Additional property replica is not allowed'],
    [{ replicas: '3' }, 'replicas: Invalid type'],
    [{ founders: 65 }, 'founders: Must be less than or equal to 64'],
    [{ nodeIds: '1=1001' }, 'nodeIds: Does not match pattern'],
    [{ storage: { size: 'big' } }, 'storage.size: Does not match pattern'],
    [{ settings: { partitions: 6 } }, 'settings: Must not validate the schema'],
    [{ spread: { zones: 'some' } }, 'spread.zones must be one of'],
    [{ secretName: '' }, 'secretName must name the secret with the certificates'],
    [
      { restore: { secretName: 'a', claimName: 'b' } },
      'restore must have secretName or claimName, and has both',
    ],
    [{ rules: 'rules: []' }, 'rules needs tokens.secretName'],
    [{ rules: 'rules: []', tls: false, tokens: { secretName: 'a' } }, 'rules needs tls'],
  ])('refuses %j', async (values, message) => {
    await expect(rendered(helm, { values })).rejects.toThrow(message);
  });
});
