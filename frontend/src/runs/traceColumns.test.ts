/** The widths of the table of a run's traces. */
import { describe, expect, it } from "vitest";
import { fakeTrace } from "../../dev/fake";
import type { TraceRecord } from "@/client/messages";
import { traceColumns } from "./traceColumns";

function width(key: string, traces: readonly TraceRecord[], flagged = false): string | undefined {
  const flags = flagged ? [{ title: "Slow" as const, reason: "", severity: "warning" as const }] : [];
  return traceColumns(() => flags, true, traces).find((column) => column.key === key)?.width;
}

describe("the columns of a run's traces", () => {
  it("are narrow if they are empty, which leaves room for what holds a step back", () => {
    const bare = [fakeTrace(1)];
    expect([width("flags", bare), width("note", bare)]).toEqual(["112px", "112px"]);
    expect(width("headline", bare)).toContain("6fr");
    expect(width("flags", bare, true)).toContain("fr");
    expect(width("note", [fakeTrace(1, { note: "odd" })])).toContain("fr");
  });
});
