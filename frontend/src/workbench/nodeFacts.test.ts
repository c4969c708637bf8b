import { describe, expect, it } from "vitest";
import type { NodeDetail } from "@/client/messages";
import { formatBytes, formatFlops, formatNs, formatShare } from "@/format";
import { KIND_NAMES } from "@/timeline/model";
import { nodeFacts } from "./nodeFacts";

const NODE = {
  kind: 0,
  op: "MatMul",
  start_ns: 1000,
  end_ns: 3000,
  op_start_ns: null,
  op_end_ns: null,
  scheduled_ns: null,
  delay_ns: null,
  share_of_type: 0.5,
  share_of_step: 0.25,
  slack_ns: null,
  launched_ns: null,
  bytes_moved: 0,
  duration_ns: 2000,
  flops: 6000,
  traffic_bytes: 300,
  source: "",
  destination: "",
  temporary_bytes: 0,
  persistent_bytes: 2_000_000,
  device_title: "CPU:0",
  thread: "0",
} as unknown as NodeDetail;

describe("the facts of an op", () => {
  it("leave out what the trace does not record", () => {
    expect(Object.fromEntries(nodeFacts(NODE))).toEqual({
      Start: formatNs(1000),
      End: formatNs(3000),
      "Scheduling delay": "unknown",
      "Of all MatMul": formatShare(0.5),
      "Of the step": formatShare(0.25),
      FLOPs: formatFlops(6000),
      "FLOPs per second": `${formatFlops(3e9)}/s`,
      "Memory traffic": formatBytes(300),
      "Traffic per second": `${formatBytes(150e6)}/s`,
      "FLOPs per byte": "20.0",
      "Persistent memory": formatBytes(2_000_000),
      Device: "CPU:0",
    });
  });

  it("tell unknown work of an op from no work", () => {
    const facts = Object.fromEntries(nodeFacts({ ...NODE, flops: null, traffic_bytes: null }));
    expect([facts["FLOPs"], facts["Memory traffic"], facts["FLOPs per second"]]).toEqual([
      "unknown",
      "unknown",
      undefined,
    ]);
    expect(Object.fromEntries(nodeFacts({ ...NODE, flops: 0 }))["FLOPs"]).toBeUndefined();
  });

  it("count what ran outside the step as no part of it", () => {
    const kind = Object.values(KIND_NAMES).indexOf("outside the step");
    expect(Object.fromEntries(nodeFacts({ ...NODE, kind }))["Of the step"]).toBe("no part of it");
  });
});
