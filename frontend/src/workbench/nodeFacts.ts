/** The facts about an op that its details list, besides its name and duration. */
import type { NodeDetail } from "@/client/messages";
import { formatBytes, formatFlops, formatNs, formatShare, significant } from "@/format";
import { KIND_NAMES } from "@/timeline/model";

/** Return FLOPs, memory traffic and their rates. An op that takes no time has no rates. */
function computingFacts({ flops, traffic_bytes: bytes, duration_ns: ns }: NodeDetail): [string, string | null][] {
  const rate = (amount: number | null, format: (amount: number) => string): string | null =>
    amount === null || amount === 0 || ns <= 0 ? null : `${format((amount / ns) * 1e9)}/s`;
  return [
    ["FLOPs", flops === null ? "unknown" : flops === 0 ? null : formatFlops(flops)],
    ["FLOPs per second", rate(flops, formatFlops)],
    ["Memory traffic", bytes === null ? "unknown" : formatBytes(bytes)],
    ["Traffic per second", rate(bytes, formatBytes)],
    ["FLOPs per byte", flops === null || bytes === null || flops * bytes === 0 ? null : significant(flops / bytes)],
  ];
}

/** Return (what, value) pairs, without those that the trace does not record. */
export function nodeFacts(node: NodeDetail): [what: string, value: string][] {
  const facts: [string, string | null][] = [
    ["Start", formatNs(node.start_ns)],
    ["End", formatNs(node.end_ns)],
    [
      "In the op itself",
      node.op_start_ns === null || node.op_end_ns === null ? null : formatNs(node.op_end_ns - node.op_start_ns),
    ],
    ["Scheduled", node.scheduled_ns === null ? null : formatNs(node.scheduled_ns)],
    ["Scheduling delay", node.delay_ns === null ? "unknown" : formatNs(node.delay_ns)],
    [`Of all ${node.op || "such ops"}`, formatShare(node.share_of_type)],
    ["Of the step", KIND_NAMES[node.kind] === "outside the step" ? "no part of it" : formatShare(node.share_of_step)],
    ["Slack", node.slack_ns === null ? null : formatNs(node.slack_ns)],
    ["Launched", (node.launched_ns ?? null) === null ? null : formatNs(node.launched_ns)],
    ...computingFacts(node),
    ["Moved", node.bytes_moved > 0 ? formatBytes(node.bytes_moved) : null],
    ["From", node.source || null],
    ["To", node.destination || null],
    ["Temporary memory", node.temporary_bytes > 0 ? formatBytes(node.temporary_bytes) : null],
    ["Persistent memory", node.persistent_bytes > 0 ? formatBytes(node.persistent_bytes) : null],
    ["Device", node.device_title],
    ["Thread", node.thread === "0" ? null : node.thread],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}
