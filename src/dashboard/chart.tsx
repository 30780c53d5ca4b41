/** A line chart of time series. Its lines differ by dashes as well as by colour, and what it shows last stands beside it as text. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { clockTime } from './words.ts';

export interface Series {
  readonly label: string;
  /** The custom property that holds its colour. */
  readonly colour: string;
  readonly dash: readonly number[];
}

interface ChartProps {
  /** What it shows, for those who do not see it. */
  readonly title: string;
  /** Of the numbers on the axis. */
  readonly unit: string;
  readonly series: readonly Series[];
  /** Seconds since 1970. */
  readonly seconds: readonly number[];
  readonly columns: readonly (readonly (number | null)[])[];
}

const HEIGHT = 180;
const NARROW = 260;

function colourOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

function optionsOf(host: HTMLElement, { unit, series }: ChartProps): UPlot.Options {
  const axis = {
    stroke: () => colourOf(host, '--muted'),
    grid: { stroke: () => colourOf(host, '--line'), width: 1 },
    ticks: { stroke: () => colourOf(host, '--line'), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  return {
    width: Math.max(NARROW, host.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, _min, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      { ...axis, space: 80, values: (_, ticks) => ticks.map((tick) => clockTime(1_000 * tick)) },
      { ...axis, size: 68, values: (_, ticks) => ticks.map((tick) => `${tick.toLocaleString('en')}${unit}`) },
    ],
    series: [
      {},
      ...series.map(({ label, colour, dash }) => ({
        label,
        stroke: () => colourOf(host, colour),
        width: 2,
        dash: [...dash],
        points: { show: false },
      })),
    ],
  };
}

function dataOf({ seconds, columns }: ChartProps): UPlot.AlignedData {
  return [[...seconds], ...columns.map((column) => [...column])];
}

export function Chart(props: ChartProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | null>(null);
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const drawn = new UPlot(optionsOf(element, props), dataOf(props), element);
    chart.current = drawn;
    const resized = new ResizeObserver(() =>
      drawn.setSize({ width: Math.max(NARROW, element.clientWidth), height: HEIGHT }),
    );
    resized.observe(element);
    const recoloured = new MutationObserver(() => drawn.redraw(false, true));
    recoloured.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      recoloured.disconnect();
      drawn.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(dataOf(props)), [props.seconds, props.columns]);
  return (
    <figure class="chart">
      <figcaption>
        {props.title}
        <ul class="legend">
          {props.series.map(({ label, colour, dash }) => (
            <li key={label}>
              <svg width="24" height="8" aria-hidden="true">
                <line
                  x1="0"
                  y1="4"
                  x2="24"
                  y2="4"
                  class={`stroke ${colour.slice(2)}`}
                  stroke-dasharray={dash.join(' ')}
                />
              </svg>
              {label}
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  );
}
