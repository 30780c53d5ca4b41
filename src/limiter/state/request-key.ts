/**
 * What a request id belongs to: one user, whatever the rule. Two requests with one key are attempts of one request, or
 * a mistake of the caller: see `fingerprint.ts`.
 */

import type { AllowRequest } from '../../api/request.ts';
import { keyLengths } from './remembered-grant.ts';
import { TextBytes } from './text-bytes.ts';

/** The key in bytes, to look it up by. One object is used for many. */
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

  /** Of one more limit of a request: it is not looked up, but found behind the first. */
  setFurther(userId: string): void {
    this.text.clear();
    this.seal(this.text.append(userId), 0);
  }

  get isFurther(): boolean {
    return this.lengths < keyLengths(0, 1);
  }

  /** The text is there already. */
  seal(userBytes: number, requestIdBytes: number): void {
    // Which part ends where is told apart by it: 'ab' and 'c' are not 'a' and 'bc'.
    this.lengths = keyLengths(userBytes, requestIdBytes);
    this.text.seal(userBytes);
  }
}

/** The same key as text, for whoever keeps requests beside the state. Undefined without a request id. */
export function requestKeyOf({ userId, requestId }: AllowRequest): string | undefined {
  return requestId === undefined ? undefined : `${userId.length}:${userId}${requestId}`;
}
