/** A small line chart without axes. It starts at zero, so that a jump looks as large as it is, and cuts outliers. */

export interface SparklineLook {
  width: number;
  height: number;
  line: string;
  fill: string;
}

/**
 * Return the end of the y axis: 8% above the largest value or, if that is less, above three times the 90th percentile. So one
 * slow step does not flatten the line.
 */
export function ceiling(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const largest = sorted[sorted.length - 1] ?? 0;
  const usual = sorted[Math.floor((sorted.length - 1) * 0.9)] ?? 0;
  return Math.min(largest, usual * 3) * 1.08 || 1;
}

/** Return the corners of the line, from left to right. */
export function points(values: readonly number[], width: number, height: number): [x: number, y: number][] {
  const top = ceiling(values);
  const step = values.length > 1 ? (width - 3) / (values.length - 1) : 0;
  return values.map((v, i) => [i * step + 1, height - 1 - Math.min(1, v / top) * (height - 3)]);
}

export function drawSparkline(context: CanvasRenderingContext2D, values: readonly number[], look: SparklineLook): void {
  const { width, height } = look;
  context.clearRect(0, 0, width, height);
  const line = points(values, width, height);
  const last = line[line.length - 1];
  if (!last || line.length < 2) return;
  context.beginPath();
  for (const [x, y] of line) context.lineTo(x, y);
  context.strokeStyle = look.line;
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(last[0], height);
  context.lineTo(1, height);
  context.fillStyle = look.fill;
  context.fill();
  context.beginPath();
  context.arc(last[0], last[1], 2, 0, Math.PI * 2);
  context.fillStyle = look.line;
  context.fill();
}
