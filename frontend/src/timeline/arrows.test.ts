import { describe, expect, it } from "vitest";
import type { NodeDetail, NodeRef } from "@/client/messages";
import { arrowsOf, dependenciesOf, MAX_ARROWS } from "./arrows";
import { modelOf } from "../../dev/timeline";
import { Layout, NO_CHOICES } from "./layout";
import { Viewport } from "./viewport";

const ref = (node: number): NodeRef => ({ node, name: `n${node}`, op: "Op", device: "" });
const model = modelOf(
  { rows: [[0, 10, 20].map((start) => ({ start, duration: 5 }))] },
  { rows: [[{ start: 40, duration: 5 }]] },
);
const detail = (parts: Partial<NodeDetail>): NodeDetail =>
  ({ node: 1, inputs: [], consumers: [], control_inputs: [], ...parts }) as unknown as NodeDetail;

describe("dependencies", () => {
  it("lead from inputs and to consumers; nodes that did not run have none", () => {
    const arrows = dependenciesOf(
      model,
      detail({ inputs: [ref(0), ref(-1)], control_inputs: [ref(2)], consumers: [ref(3), ref(77)] }),
    );
    expect(arrows).toEqual([
      { from: 0, to: 1, direction: "input" },
      { from: 2, to: 1, direction: "input" },
      { from: 1, to: 3, direction: "consumer" },
    ]);
  });

  it("are limited in number", () => {
    const many = Array.from({ length: 1000 }, () => ref(0));
    expect(dependenciesOf(model, detail({ inputs: many }))).toHaveLength(MAX_ARROWS);
  });

  it("begin at an end and end at a start, in the middle of their rows", () => {
    const viewport = new Viewport(model.durationNs);
    viewport.resize(1000, 300);
    const layout = new Layout(model.lanes, NO_CHOICES, false);
    const [arrow] = arrowsOf(model, layout, viewport, [{ from: 0, to: 3, direction: "consumer" }]);
    expect(arrow.x0).toBeCloseTo(viewport.xAt(5), 6);
    expect(arrow.x1).toBeCloseTo(viewport.xAt(40), 6);
    expect(arrow.y0).toBe(layout.bands[0].rowsTop + layout.bands[0].rowHeight / 2);
    expect(arrow.y1).toBeGreaterThan(arrow.y0);
    const hidden = new Layout(model.lanes, { ...NO_CHOICES, hidden: new Set([1]) }, false);
    expect(arrowsOf(model, hidden, viewport, [{ from: 0, to: 3, direction: "consumer" }])).toEqual([]);
  });
});
