/** Tests the form of tokens, and that only the right secret is accepted. */
import { describe, expect, it } from 'vitest';
import { partsOfToken, validateTokenEntry } from '../../src/api/token.ts';
import { drawToken, isSecretOf } from '../../src/config/token-secret.ts';

describe('a token', () => {
  const { token, entry } = drawToken({ role: 'decide', name: 'gateway' }, 1_700_000_000_123);

  it('consists of its id and 256 bits that are stored nowhere', () => {
    expect(token).toMatch(/^qt_[a-z0-9]{8}_[\w-]{43}$/);
    const { id, secret = '' } = partsOfToken(token) ?? {};
    expect(id).toBe(entry.id);
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    expect(JSON.stringify(entry)).not.toContain(secret);
    expect(validateTokenEntry(entry, 'token')).toEqual(entry);
  });

  it('is different every time', () => {
    const drawn = Array.from({ length: 1_000 }, () => drawToken({ role: 'read', name: 'n' }, 0).entry);
    expect(new Set(drawn.map(({ id }) => id)).size).toBe(1_000);
    expect(new Set(drawn.map(({ sha256 }) => sha256)).size).toBe(1_000);
  });

  it('is accepted with its secret, and with no other', () => {
    const { secret = '' } = partsOfToken(token) ?? {};
    expect(isSecretOf(entry, secret)).toBe(true);
    expect(isSecretOf(entry, `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`)).toBe(false);
    expect(isSecretOf(entry, '')).toBe(false);
    expect(isSecretOf(undefined, secret)).toBe(false);
  });

  it.each(['', 'qt_', `${token} `, `x${token}`, `${token}A`, token.toUpperCase(), token.replace('qt', 'QT')])(
    'has one form only, and not %j',
    (text) => expect(partsOfToken(text)).toBeUndefined(),
  );
});
