import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatChange,
  formatCount,
  formatFactor,
  formatNs,
  formatRate,
  formatSeconds,
  formatShare,
  formatTime,
  NONE,
  plural,
  shortDevice,
} from "./format";

const plain = (text: string): string => text.replaceAll("\u202f", " ");

describe("durations", () => {
  it.each([
    [0, "0 s"],
    [1, "1 ns"],
    [1.5, "1.50 ns"],
    [830, "830 ns"],
    [999.96, "1.00 µs"],
    [12_345, "12.3 µs"],
    [1_234_567, "1.23 ms"],
    [999_999_999, "1.00 s"],
    [999_930, "1.00 ms"],
    [4.56e9, "4.56 s"],
    [200e9, "3 min 20 s"],
    [7_500e9, "2 h 05 min"],
    [50 * 3600e9, "2 d 2 h"],
    [-1500, "-1.50 µs"],
  ])("%d ns reads %s", (ns, text) => {
    expect(plain(formatNs(ns))).toBe(text);
  });

  it("shows a dash for an unknown number", () => {
    expect(formatNs(null)).toBe(NONE);
    expect(formatSeconds(undefined)).toBe(NONE);
    expect(formatNs(Infinity)).toBe(NONE);
  });

  it("takes seconds too", () => {
    expect(plain(formatSeconds(0.0412))).toBe("41.2 ms");
  });
});

describe("sizes, counts, shares", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1536, "1.54 kB"],
    [152e6, "152 MB"],
    [1e12, "1.00 TB"],
  ])("%d bytes read %s", (bytes, text) => {
    expect(plain(formatBytes(bytes))).toBe(text);
  });

  it("separates thousands", () => {
    expect(formatCount(1_048_576)).toBe("1,048,576");
    expect(formatCount(null)).toBe(NONE);
  });

  it("keeps small shares visible", () => {
    expect([0, 0.0004, 0.0123, 0.41, 1].map(formatShare)).toEqual(["0%", "<0.1%", "1.2%", "41%", "100%"]);
  });

  it("shows a time as a multiple of the usual one", () => {
    expect(formatFactor(0.061, 0.0412)).toBe("1.48×");
    expect(formatFactor(1, null)).toBe(NONE);
    expect(formatFactor(1, 0)).toBe(NONE);
  });

  it("shows the change of a time in percent, from twice on as a factor", () => {
    expect(formatChange(0.1, 1.278)).toBe("12.8× slower");
    expect(formatChange(1, 1.17)).toBe("17% slower");
    expect(formatChange(1, 0.9)).toBe("10% quicker");
    expect(formatChange(3.2, 1)).toBe("3.20× quicker");
  });

  it("counts in words", () => {
    expect(plural(1, "step")).toBe("1 step");
    expect(plural(2000, "process", "processes")).toBe("2,000 processes");
    expect(formatRate(23.44)).toBe("23.4/s");
  });
});

describe("times of day", () => {
  const noon = new Date(2026, 2, 5, 12, 0, 1);

  it("leaves out today's date", () => {
    expect(formatTime(noon.getTime() / 1000, noon)).toBe("12:00:01");
  });

  it("names another day", () => {
    expect(formatTime(noon.getTime() / 1000, new Date(2026, 2, 6))).toBe("5 Mar, 12:00:01");
  });
});

describe("a device's short name", () => {
  it("keeps the parts that tell devices apart", () => {
    expect(shortDevice("/job:localhost/replica:0/task:0/device:CPU:0")).toBe("CPU:0");
    expect(shortDevice("/job:ps/replica:0/task:3/device:GPU:1")).toBe("ps/3 GPU:1");
    expect(shortDevice("/job:worker/replica:0/task:0")).toBe("worker/0");
    expect(shortDevice("/gpu:0/stream:12")).toBe("GPU:0 stream 12");
    expect(shortDevice("/device:GPU:4/stream:63<MemcpyH2D>")).toBe("GPU:4 stream 63 (MemcpyH2D)");
    expect(shortDevice("/device:GPU:0/stream:all")).toBe("GPU:0 all streams");
    expect(shortDevice("/host:CPU")).toBe("CPU");
    expect(shortDevice("/host:CPU/tf.data")).toBe("tf.data");
    expect(shortDevice("a name/of no scheme")).toBe("a name/of no scheme");
    expect(shortDevice("/no/scheme")).toBe("/no/scheme");
    expect(shortDevice("/job:</b>/replica:0/task:0/device:CPU:0")).toBe("/job:</b>/replica:0/task:0/device:CPU:0");
    expect(shortDevice("")).toBe("");
    expect(shortDevice("rank 1 /job:localhost/replica:0/task:0/device:GPU:0")).toBe("rank 1 GPU:0");
    expect(shortDevice("worker/1 /job:worker/replica:0/task:1/device:CPU:0")).toBe("worker/1 CPU:0");
    expect(shortDevice("worker/1 /job:ps/replica:0/task:0/device:CPU:0")).toBe("ps/0 CPU:0 for worker/1");
    expect(shortDevice("rank 1 /gpu:0/stream:12")).toBe("rank 1 GPU:0 stream 12");
  });
});
