/** Counts the answers to requests for a grant, by outcome. */
import type { AskAnswer } from '../api/question.ts';
import type { DoorCounts } from './command.ts';

/** Adds one answer to the counters. */
export function count({ answers }: DoorCounts, answer: AskAnswer): void {
  switch (answer.kind) {
    case 'unlimited':
      answers.granted += 1;
      return;
    case 'unmatched':
      answers.denied += 1;
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
