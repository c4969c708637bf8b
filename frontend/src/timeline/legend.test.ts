import { describe, expect, it } from "vitest";
import { modelOf } from "../../dev/timeline";
import { legendOf } from "./legend";
import { Kind } from "./model";
import { coloursOf } from "./resolveColourClashes";

describe("legend", () => {
  it("lists op types by time, without repeats", () => {
    const model = modelOf({
      rows: [
        [
          { start: 0, duration: 5, op: "A" },
          { start: 10, duration: 50, op: "B", kind: Kind.COMMUNICATION },
          { start: 70, duration: 10, op: "A" },
          { start: 90, duration: 900, op: "A", kind: Kind.REPEAT },
        ],
      ],
    });
    expect(legendOf(model, coloursOf(model), 5).map((e) => [e.title, e.totalNs])).toEqual([
      ["B", 50],
      ["A", 15],
    ]);
    expect(legendOf(model, coloursOf(model), 1)).toHaveLength(1);
  });
});
