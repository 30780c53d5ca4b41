/** Tests the figures of the last minutes for alerts. */
import { describe, expect, it } from 'vitest';
import { RECENT_MINUTES, RecentFigures } from '../../src/usage/recent-figures.ts';

function figuresAt(minute: number): RecentFigures {
  const recent = new RecentFigures();
  recent.turnTo(minute);
  return recent;
}

describe('figures for alerts', () => {
  it('are healthy while there are no requests', () => {
    expect(figuresAt(7).figures).toEqual({
      limitHitRatio: 0,
      p99Seconds: 0,
      availability: 1,
      wrongDenialRatioMax: 0,
    });
  });

  it('are fractions of all answers', () => {
    const recent = figuresAt(7);
    for (let i = 0; i < 6; i += 1) recent.decided(true);
    for (let i = 0; i < 2; i += 1) recent.decided(false);
    recent.undecided(0);
    recent.undecided(3);
    expect(recent.figures).toMatchObject({
      limitHitRatio: 0.25,
      availability: 0.8,
      wrongDenialRatioMax: 0.5,
    });
    recent.undecided(1_000_000);
    expect(recent.figures.wrongDenialRatioMax).toBe(1);
    recent.unread(9);
    expect(recent.figures.availability).toBe(0.4);
  });

  it('count decisions by fail mode neither as decisions, nor, if granted, as denials', () => {
    const recent = figuresAt(7);
    for (let i = 0; i < 6; i += 1) recent.decided(true);
    for (let i = 0; i < 3; i += 1) recent.degraded(true);
    recent.degraded(false);
    expect(recent.figures).toMatchObject({ limitHitRatio: 0, availability: 0.6, wrongDenialRatioMax: 0.1 });
  });

  it('report the 99th percentile, at most a fifth too long', () => {
    const recent = figuresAt(7);
    for (let i = 1; i <= 1_000; i += 1) recent.took(i);
    expect(recent.figures.p99Seconds).toBeGreaterThanOrEqual(0.99);
    expect(recent.figures.p99Seconds).toBeLessThanOrEqual(0.99 * 1.2);
  });

  it.each([0, -1, 1e9])('count %s ms as the shortest or the longest time', (millis) => {
    const recent = figuresAt(7);
    recent.took(millis);
    expect([0.000_125, 8.192]).toContain(recent.figures.p99Seconds);
  });

  it('drop older counts, and those ahead of a clock that was set back', () => {
    const recent = figuresAt(100);
    recent.decided(false);
    recent.turnTo(100 + RECENT_MINUTES - 1);
    recent.decided(true);
    expect(recent.figures.limitHitRatio).toBe(0.5);
    recent.turnTo(100 + RECENT_MINUTES);
    expect(recent.figures.limitHitRatio).toBe(0);
    recent.turnTo(99);
    expect(recent.figures).toMatchObject({ limitHitRatio: 0, availability: 1 });
  });
});
