/** What the door counts of its answers to requests for a grant. */
import type { DescribedAnswer } from '../api/described.ts';
import type { DoorCounts } from './command.ts';

export function count({ answers }: DoorCounts, answer: DescribedAnswer): void {
  switch (answer.kind) {
    case 'unlimited':
      answers.granted += 1;
      return;
    case 'degraded':
      answers[answer.allowed ? 'granted' : 'denied'] += 1;
      return;
    case 'decision':
      answers[answer.decision.allowed ? 'granted' : 'denied'] += 1;
      return;
    default:
      answers[answer.kind] += 1;
  }
}
