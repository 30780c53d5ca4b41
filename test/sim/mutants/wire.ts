/** Mutants: the encoding of frames between nodes and of entries. */
import type { Mutant } from './mutant.ts';

export const WIRE: readonly Mutant[] = [
  {
    id: 'M16',
    bug: 'the checksums of frames are not verified',
    edits: [
      {
        in: 'FrameDecoder.#checkHeader',
        find: 'if (buffer.readUInt32BE(offset + 20) !== crc32(buffer.subarray(offset, offset + 20)))',
        replace: 'if (false)',
      },
      {
        in: 'FrameDecoder.#frame',
        find: 'if (bytes.readUInt32BE(16) !== crc32(payload))',
        replace: 'if (false)',
      },
    ],
  },
  {
    id: 'T9',
    bug: 'wait and reset are swapped between nodes',
    law: 'every answer agrees with the log',
    edits: [
      {
        in: 'encodeLimit',
        find: 'out.integer(keyStatus.retryAfterMillis);\n  out.integer(keyStatus.resetMillis);',
        replace: 'out.integer(keyStatus.resetMillis);\n  out.integer(keyStatus.retryAfterMillis);',
      },
    ],
  },
  {
    id: 'T10',
    bug: 'the position in the entry is lost between nodes',
    law: 'every grant has a receipt of its own',
    edits: [
      {
        in: 'encodeReceipt',
        find: 'position === undefined ? 0 : position + 1',
        replace: '0',
      },
    ],
  },
  {
    id: 'T11',
    bug: 'timestamps are lost between nodes',
    law: 'the log holds what was asked',
    edits: [
      {
        in: 'requestAtRow',
        find: 'timestampMillis,\n    requestId:',
        replace: 'timestampMillis: undefined,\n    requestId:',
      },
    ],
  },
  {
    id: 'T12',
    bug: 'costs are lost between nodes',
    law: 'the log holds what was asked',
    edits: [{ in: 'requestAtRow', find: 'cost === 1 ? undefined : cost', replace: 'undefined' }],
  },
  {
    id: 'T15',
    bug: 'a batch keeps the rules of the batch before it',
    law: 'the log holds what was asked',
    edits: [{ in: 'AllowBatchBuilder.clear', find: 'this.#ruleIndexOf.clear();', replace: '' }],
  },
  {
    id: 'T16',
    bug: 'a request in a batch gets the cost of an earlier one',
    law: 'the log holds what was asked',
    edits: [
      {
        in: 'BatchCursor.next',
        find: 'this.cost = 1 + this.#integer(COLUMN.cost);',
        replace: 'this.cost = 1 + (this.#integer(COLUMN.cost) || this.cost - 1);',
      },
    ],
  },
  {
    id: 'T19',
    bug: 'the vote request of a hand-over is sent like any other',
    law: 'a graceful stop is noticed by nobody',
    edits: [
      {
        in: 'encodeMessage',
        find: 'out.flag(message.isTransfer);',
        replace: 'out.flag(false);',
      },
    ],
  },
  {
    id: 'T20',
    bug: 'a conflict hint has its index and its term swapped',
    law: 'a quorum makes progress, all replicas end up equal',
    edits: [
      {
        in: 'encodeMessage',
        find: 'out.integer(message.hintIndex);\n      out.integer(message.hintTerm);',
        replace: 'out.integer(message.hintTerm);\n      out.integer(message.hintIndex);',
      },
    ],
  },
];
