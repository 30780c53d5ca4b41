/**
 * A request that says what it is, and leaves to the rules in force which limits it is under: by which keys, at which costs.
 * All of them grant it, or none. Plain data, and the check of what is asked.
 */
import type { AllowAnswer, Invalid } from './answer.ts';
import { isBoundedText } from './bounded.ts';
import { type AllowRequest, invalidIn } from './request.ts';

/** The most descriptors of one request. */
export const DESCRIPTORS_MAX = 16;
/** The longest name, in UTF-8 bytes. */
export const DESCRIPTOR_NAME_BYTES_MAX = 64;
/** The longest value, in UTF-8 bytes; a key that is made of several is shorter, see `KEY_BYTES_MAX`. */
export const DESCRIPTOR_VALUE_BYTES_MAX = 1_024;

export interface DescribedRequest extends Pick<AllowRequest, 'cost' | 'timestampMillis' | 'requestId'> {
  readonly ask: 'described';
  /** 1 to `DESCRIPTORS_MAX`, by name: `user`, `ip`, `endpoint`, or whatever the rules ask for. */
  readonly descriptors: ReadonlyMap<string, string>;
}

export type DescribedAnswer =
  | AllowAnswer
  /** No rule of this version limits it. Nothing was counted. */
  | { readonly kind: 'unlimited'; readonly rulesVersion: number }
  | DegradedAnswer;

/** Nobody could decide, and the fail modes of the rules did, at the node that was asked. There is no receipt of it. */
export interface DegradedAnswer {
  readonly kind: 'degraded';
  readonly allowed: boolean;
  /** The rules of the document that nobody could decide, at least one, each once. */
  readonly ruleIds: readonly string[];
  /** Of the rules that found these. */
  readonly rulesVersion: number;
  /** 0 if it is allowed; else until this node would let it through, if nobody can decide by then either. */
  readonly retryAfterMillis: number;
}

/** Told once. `partition` is that of the key that binds. */
export type DescribedDone = (answer: DescribedAnswer, partition: number) => void;

/** The first thing that is out of its bounds; undefined if the request is well-formed. */
export function invalidInDescribed({ descriptors, ...rest }: DescribedRequest): Invalid | undefined {
  if (descriptors.size === 0 || descriptors.size > DESCRIPTORS_MAX)
    return wrong('descriptors', `descriptors must be 1 to ${DESCRIPTORS_MAX}`);
  for (const [name, value] of descriptors) {
    if (!isBoundedText(name, DESCRIPTOR_NAME_BYTES_MAX))
      return wrong(
        'descriptors',
        `the name of a descriptor must be text of 1 to ${DESCRIPTOR_NAME_BYTES_MAX} bytes`,
      );
    if (value !== '' && !isBoundedText(value, DESCRIPTOR_VALUE_BYTES_MAX))
      return wrong(`descriptors.${name}`, `${name} must be text of 0 to ${DESCRIPTOR_VALUE_BYTES_MAX} bytes`);
  }
  const { cost, timestampMillis, requestId } = rest;
  return invalidIn({ userId: '*', cost, timestampMillis, requestId });
}

function wrong(field: string, message: string): Invalid {
  return { kind: 'invalid', field, message };
}
