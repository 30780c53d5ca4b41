/** Words of JSON Schema (2020-12), as the documents of this folder use them. They know nothing of what is described. */

export type Schema = Readonly<Record<string, unknown>>;
type Properties = Readonly<Record<string, Schema>>;

/** @param maxBytes in UTF-8. A schema counts characters, so it takes what is longer in bytes; the door does not. */
export function text(maxBytes: number, description?: string): Schema {
  const bound = `1 to ${maxBytes} bytes of UTF-8`;
  const said = description === undefined ? bound : `${description}; ${bound}`;
  return { type: 'string', minLength: 1, maxLength: maxBytes, description: said };
}

export function integer(minimum: number, maximum?: number, description?: string): Schema {
  return {
    type: 'integer',
    minimum,
    ...(maximum !== undefined && { maximum }),
    ...(description !== undefined && { description }),
  };
}

export function oneOf(values: readonly (string | number)[], description?: string): Schema {
  return { enum: values, ...(description !== undefined && { description }) };
}

export function list(
  items: Schema,
  bounds: { readonly minItems?: number; readonly maxItems?: number } = {},
): Schema {
  return { type: 'array', items, ...bounds };
}

/** What is asked: no other fields. @param required those that must be there */
export function asked(properties: Properties, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** What is told: there may be more fields, now or later. @param optional those that may be missing */
export function told(properties: Properties, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required };
}

/** A field that counts as absent when it is null. */
export function orNull(schema: Schema): Schema {
  return { ...schema, type: [schema['type'], 'null'] };
}

export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}
