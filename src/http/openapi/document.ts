/** The HTTP door as an OpenAPI 3.1 document: made of what is described in this folder, once. */
import { CLUSTER_OPERATIONS } from './cluster-operations.ts';
import { SCHEMAS } from './components.ts';
import { DECISION_OPERATIONS } from './decision-operations.ts';
import { type Operation, operationObject, pathOf } from './operation.ts';
import { RULE_OPERATIONS } from './rule-operations.ts';
import type { Schema } from './schema.ts';

/** By method and path, as the router has them. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...DECISION_OPERATIONS,
  ...RULE_OPERATIONS,
  ...CLUSTER_OPERATIONS,
};

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  /** By path and method, in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Schema>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Schema;
  };
}

export function openApiDocument(): OpenApiDocument {
  const paths: Record<string, Record<string, Schema>> = {};
  for (const [route, operation] of Object.entries(OPERATIONS)) {
    const [method = ''] = route.split(' ');
    const path = (paths[pathOf(route)] ??= {});
    path[method.toLowerCase()] = operationObject(route, operation);
  }
  const groups = new Set(Object.values(OPERATIONS).map(({ group }) => group));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Quorate',
      version: '1',
      description:
        'A rate limiter cluster that answers *allow* only after a majority of nodes has the grant on disk. Any node may be asked. Whatever is wrong, no answer but 200 lets a request go on.',
    },
    tags: [...groups].map((name) => ({ name })),
    paths,
    components: { schemas: SCHEMAS, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  };
}
