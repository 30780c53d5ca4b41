/**
 * What a request id belongs to: one user, independent of the rule. Two requests with the same key are either attempts
 * of one request or a mistake of the caller: see `fingerprint.ts`.
 */

import type { AllowRequest } from '../../api/request.ts';
import { keyLengths } from './remembered-grant.ts';
import { TextBytes } from './text-bytes.ts';

/** The key in bytes, for lookups. One object is reused for many. */
export class RequestKey {
  readonly text: TextBytes;
  lengths = 0;

  constructor(seed: number) {
    this.text = new TextBytes(seed);
  }

  set(userId: string, requestId: string): void {
    this.text.clear();
    const userBytes = this.text.append(userId);
    const requestIdBytes = this.text.append(requestId);
    this.seal(userBytes, requestIdBytes);
  }

  /** Sets the key of a further limit of a request. It is never looked up, but found after the first limit. */
  setFurther(userId: string): void {
    this.text.clear();
    this.seal(this.text.append(userId), 0);
  }

  get isFurther(): boolean {
    return this.lengths < keyLengths(0, 1);
  }

  /** Completes the key. Its text is there already. */
  seal(userBytes: number, requestIdBytes: number): void {
    // The lengths are part of the key: 'ab' + 'c' differs from 'a' + 'bc'.
    this.lengths = keyLengths(userBytes, requestIdBytes);
    this.text.seal(userBytes);
  }
}

/** The same key as text, for code that keeps requests outside the state; undefined without a request id. */
export function requestKeyOf({ userId, requestId }: AllowRequest): string | undefined {
  return requestId === undefined ? undefined : `${userId.length}:${userId}${requestId}`;
}
