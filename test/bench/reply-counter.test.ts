/** Tests counting the answers in a stream of RESP replies. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReplyCounter, type ReplyMeaning, ReplyStreamError } from '../../bench/load/reply-counter.ts';

const SCRIPT: ReplyMeaning = { grantValue: 1 };
const THROTTLE: ReplyMeaning = { grantValue: 0 };

/** Counts the answers in `text`, fed in pieces cut at these places. */
function counted(text: string, meaning: ReplyMeaning, cuts: readonly number[] = []): readonly number[] {
  const bytes = Buffer.from(text);
  const counter = new ReplyCounter(meaning);
  let from = 0;
  for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
    counter.feed(bytes.subarray(from, Math.max(from, cut)));
    from = Math.max(from, cut);
  }
  return [counter.grants, counter.denials, counter.errors];
}

const GRANTED = '*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1\r\n';
const DENIED = '*5\r\n:1\r\n:10\r\n:0\r\n:3\r\n:3\r\n';
const FAILED = '-UNAVAILABLE no leader; 1 of 3\r\n';

describe('the counting of replies', () => {
  test('reads the answer of a script from one integer', () => {
    expect(counted(':1\r\n:0\r\n:1\r\n', SCRIPT)).toEqual([2, 1, 0]);
  });

  test('reads the answer of CL.THROTTLE from the first of five integers', () => {
    expect(counted(GRANTED + DENIED + GRANTED, THROTTLE)).toEqual([2, 1, 0]);
  });

  test('counts an error, a status, a null or another number neither as a grant nor as a denial', () => {
    expect(counted(`${FAILED}+OK\r\n$-1\r\n*-1\r\n_\r\n:7\r\n:-1\r\n*0\r\n`, SCRIPT)).toEqual([0, 0, 8]);
  });

  test('ignores an integer inside a string', () => {
    expect(counted('$6\r\n:1\r\n:1\r\n:1\r\n', SCRIPT)).toEqual([1, 0, 1]);
  });

  test('counts nested arrays, maps and strings as one reply', () => {
    const nested = '*3\r\n%1\r\n$1\r\na\r\n*2\r\n:1\r\n:0\r\n#t\r\n,1.5\r\n';
    expect(counted(nested + nested, SCRIPT)).toEqual([2, 0, 0]);
  });

  test('counts an answer if enough replicas have it, and otherwise an error', () => {
    const replicated: ReplyMeaning = { grantValue: 1, wait: { answers: 1, replicasMin: 1 } };
    const replies = ':1\r\n:1\r\n:1\r\n:0\r\n:0\r\n:2\r\n-ERR x\r\n:1\r\n';
    expect(counted(replies, replicated)).toEqual([1, 1, 2]);
  });

  test('applies one WAIT to several answers', () => {
    const replicated: ReplyMeaning = { grantValue: 1, wait: { answers: 3, replicasMin: 1 } };
    expect(counted(':1\r\n:0\r\n:1\r\n:2\r\n', replicated)).toEqual([2, 1, 0]);
    expect(counted(':1\r\n:0\r\n:1\r\n:0\r\n:1\r\n', replicated)).toEqual([0, 0, 3]);
  });

  test('does not count an answer before its replicas have it', () => {
    const counter = new ReplyCounter({ grantValue: 1, wait: { answers: 1, replicasMin: 1 } });
    counter.feed(Buffer.from(':1\r\n'));
    expect(counter.answers).toBe(0);
    counter.feed(Buffer.from(':1\r\n'));
    expect(counter.answers).toBe(1);
  });

  test('is the same for a stream in any pieces', () => {
    const reply = fc.constantFrom(GRANTED, DENIED, FAILED, ':0\r\n', '$3\r\n\r\n:\r\n', '*2\r\n+1\r\n:0\r\n');
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 20 }), fc.array(fc.nat(400)), (replies, cuts) => {
        const text = replies.join('');
        expect(
          counted(
            text,
            THROTTLE,
            cuts.filter((cut) => cut < text.length),
          ),
        ).toEqual(counted(text, THROTTLE));
        expect(counted(text, THROTTLE).reduce((sum, each) => sum + each, 0)).toBe(replies.length);
      }),
    );
  });

  test('reads no byte beyond the given length', () => {
    const counter = new ReplyCounter(SCRIPT);
    counter.feed(Buffer.from(':1\r\n:1\r\n'), 4);
    expect(counter.grants).toBe(1);
  });

  test('refuses a stream that is no RESP', () => {
    expect(() => counted('HTTP/1.1 400 Bad Request\r\n', SCRIPT)).toThrow(ReplyStreamError);
  });
});
