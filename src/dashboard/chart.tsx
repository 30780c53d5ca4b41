/** A line chart of time series, drawn by uPlot. Lines differ by their dashes as well as by colour. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { shownColumns } from './history.ts';
import { clockTime } from './words.ts';

/** One line of a chart. */
export interface Series {
  readonly label: string;
  /** CSS custom property with the colour, such as `--denied`. */
  readonly colour: string;
  readonly dash: readonly number[];
}

interface ChartProps {
  /** Title above the chart. Screen readers read it instead of the picture. */
  readonly title: string;
  /** Unit after each number on the axis. */
  readonly unit: string;
  readonly series: readonly Series[];
  /** Seconds since 1970. */
  readonly seconds: readonly number[];
  readonly columns: readonly (readonly (number | null)[])[];
  /** Width of the time axis, ending at the last point. Absent: the axis starts at the first point. */
  readonly minutes?: number;
}

const HEIGHT = 180;
const NARROW = 260;
/** Width of a letter on an axis, in pixels. */
const LETTER_WIDTH = 7.5;
const AXIS_MARGIN = 20;
const TIMES_HEIGHT = 30;
/** From this range on, the axis shows no seconds. */
const LONG_MINUTES = 30;

function colourOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** Width of an axis that fits its longest label. */
function widthOf(labels: readonly string[]): number {
  return AXIS_MARGIN + LETTER_WIDTH * Math.max(3, ...labels.map(({ length }) => length));
}

function optionsOf(
  host: HTMLElement,
  { unit, series }: ChartProps,
  minutesNow: () => number | undefined,
): UPlot.Options {
  const from = (min: number, max: number): number => {
    const minutes = minutesNow();
    return minutes === undefined ? min : max - 60 * minutes;
  };
  const timeWords = (second: number): string => {
    const time = clockTime(1_000 * second);
    return (minutesNow() ?? 0) >= LONG_MINUTES ? time.slice(0, 5) : time;
  };
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
    scales: {
      x: { range: (_, min, max) => [from(min, max), max] },
      y: { range: (_, _min, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      { ...axis, space: 80, size: TIMES_HEIGHT, values: (_, ticks) => ticks.map(timeWords) },
      {
        ...axis,
        size: (_, values) => widthOf(values ?? []),
        values: (_, ticks) => ticks.map((tick) => `${tick.toLocaleString('en')}${unit}`),
      },
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

/** Columns for uPlot. A column that is 0 throughout is not drawn, because the legend does not name it. */
function dataOf({ seconds, columns }: ChartProps): UPlot.AlignedData {
  const shown = shownColumns(columns);
  return [
    [...seconds],
    ...columns.map((column, i) => (shown.includes(i) ? [...column] : column.map(() => null))),
  ];
}

/** The chart with its title and legend. */
export function Chart(props: ChartProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | null>(null);
  const minutes = useRef(props.minutes);
  minutes.current = props.minutes;
  const shown = shownColumns(props.columns);
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const drawn = new UPlot(
      optionsOf(element, props, () => minutes.current),
      dataOf(props),
      element,
    );
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
  useEffect(() => chart.current?.setData(dataOf(props)), [props.seconds, props.columns, props.minutes]);
  return (
    <figure class="chart">
      <figcaption>
        {props.title}
        <ul class="legend">
          {shown
            .map((i) => props.series[i])
            .filter((each) => each !== undefined)
            .map(({ label, colour, dash }) => (
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
        {shown.length === 0 && <p class="quiet">Nothing to draw yet.</p>}
      </figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  );
}
