/** A CA for tests, with valid and invalid node certificates in a temporary directory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { PeerTls } from '../../src/tls/node-tls.ts';
import { nodeFiles, storeAuthority, storeNodeCertificate } from '../../src/tls/certificate-files.ts';
import type { CredentialFiles } from '../../src/tls/credentials.ts';
import { type Issued, issueAuthority, issueNodeCertificate } from '../../src/tls/issue.ts';
import { LiveCredentials } from '../../src/tls/live-credentials.ts';
import type { NodeName } from '../../src/tls/node-name.ts';

export const HOST = '127.0.0.1';
const DAY_MILLIS = 86_400_000;

export interface IssuedFor extends NodeName {
  readonly hosts?: readonly string[];
  /** The age of the certificate. */
  readonly agoMillis?: number;
  readonly days?: number;
}

export class Authority {
  readonly directory: string;
  readonly ca: Issued;

  private constructor(directory: string, ca: Issued) {
    this.directory = directory;
    this.ca = ca;
  }

  static async make(clusterId: string): Promise<Authority> {
    const directory = await mkdtemp(join(tmpdir(), 'quorate-test-certs-'));
    const ca = await issueAuthority(clusterId, Date.now() - 100 * DAY_MILLIS);
    await storeAuthority(directory, ca);
    return new Authority(directory, ca);
  }

  get caFile(): string {
    return join(this.directory, 'certs', 'ca.crt');
  }

  /** The files of a new certificate for a node. */
  async issue({ hosts = [HOST], agoMillis = 0, days = 1, ...name }: IssuedFor): Promise<CredentialFiles> {
    const nowMillis = Date.now() - agoMillis;
    const issued = await issueNodeCertificate({ ...name, ca: this.ca, hosts, days, nowMillis });
    await storeNodeCertificate(this.directory, name.nodeId, issued);
    return { ca: this.caFile, ...nodeFiles(this.directory, name.nodeId) };
  }

  /** The TLS settings of a node with the certificate of `issued`; `name` is the node that it claims to be. */
  async peer(name: NodeName, issued: IssuedFor = name): Promise<PeerTls> {
    const files = await this.issue(issued);
    const logger = pino({ level: 'silent' });
    // A node would not start with such a certificate; peers treat one that expires later the same way.
    const wallMillis = (): number => Date.now() - (issued.agoMillis ?? 0);
    return { name, credentials: await LiveCredentials.open({ setting: 'tls', files, logger, wallMillis }) };
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}
