import { describe, expect, it } from "vitest";
import { analysisPath, paths } from "./client";

describe("the path of an analysis", () => {
  it("has some parameters in the place of its braces, and the others in its query", () => {
    expect(analysisPath("verdict")).toBe("verdict");
    expect(analysisPath("ops", { by: "type" })).toBe("ops?by=type");
    expect(analysisPath("nodes/{index}", { index: 3 })).toBe("nodes/3");
    expect(paths.analysis(7, "nodes/{index}/graph", { index: 3, depth: 2 })).toBe("traces/7/nodes/3/graph?depth=2");
  });
});
