/** The plot of round-trip times over the last seconds. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

const SECONDS = 30;
const HEIGHT = 240;
const DRAW_MS = 100;
const MIN_TOP_MS = 2;

interface Sample {
  at: number;
  message: number | null;
  smoothed: number | null;
}

export class Plot {
  readonly #box: HTMLElement;
  #samples: Sample[] = [];
  #chart: uPlot;

  constructor(box: HTMLElement) {
    this.#box = box;
    this.#chart = this.#make();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#chart.destroy();
      this.#chart = this.#make();
    });
    new ResizeObserver(() => this.#chart.setSize(this.#size())).observe(box);
    // Drawn at intervals, because drawing in every frame would delay the messages that are measured.
    setInterval(() => {
      if (!document.hidden) {
        this.#draw();
      }
    }, DRAW_MS);
  }

  /** Adds the round-trip time of a message. */
  add(roundTripMs: number): void {
    this.#push({ at: seconds(), message: roundTripMs, smoothed: null });
  }

  /** Adds RakNet's current smoothed round-trip time. Ignores `undefined` and 0. */
  smoothed(roundTripMs: number | undefined): void {
    if (roundTripMs !== undefined && roundTripMs > 0) {
      this.#push({ at: seconds(), message: null, smoothed: roundTripMs });
    }
  }

  /** Returns the median round-trip time of the messages in the plot, or 0 if there are none. */
  median(): number {
    const times = this.#samples.flatMap(({ message }) => message ?? []).sort((one, other) => one - other);
    return times[Math.floor(times.length / 2)] ?? 0;
  }

  clear(): void {
    this.#samples = [];
  }

  #push(sample: Sample): void {
    this.#samples.push(sample);
    this.#removeOld();
  }

  #removeOld(): void {
    const oldest = seconds() - SECONDS;
    const kept = this.#samples.findIndex(({ at }) => at >= oldest);
    this.#samples.splice(0, kept < 0 ? Infinity : kept);
  }

  #draw(): void {
    this.#removeOld();
    const now = seconds();
    this.#box.dataset["points"] = String(this.#samples.length);
    this.#chart.setData([
      this.#samples.map(({ at }) => at - now),
      this.#samples.map(({ message }) => message),
      this.#samples.map(({ smoothed }) => smoothed),
    ]);
  }

  #size(): { width: number; height: number } {
    return { width: this.#box.clientWidth, height: HEIGHT };
  }

  #make(): uPlot {
    const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis: uPlot.Axis = {
      stroke: color("--quiet"),
      grid: { stroke: color("--rule"), width: 1 },
      ticks: { stroke: color("--rule"), width: 1 },
      font: "12px system-ui, sans-serif",
    };
    const options: uPlot.Options = {
      ...this.#size(),
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: [-SECONDS, 0] },
        y: { range: (_, __, highest) => [0, Math.max(MIN_TOP_MS, (highest ?? 0) * 1.15)] },
      },
      axes: [
        { ...axis, size: 34, values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "now" : `${tick} s`)) },
        { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => `${tick} ms`) },
      ],
      series: [
        {},
        { stroke: color("--accent"), width: 1.5, spanGaps: true, points: { show: true, size: 4, fill: color("--accent") } },
        { stroke: color("--second"), width: 2, dash: [6, 4], spanGaps: true, points: { show: false } },
      ],
    };
    return new uPlot(options, [[], [], []], this.#box);
  }
}

function seconds(): number {
  return performance.now() / 1000;
}
