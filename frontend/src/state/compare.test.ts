import { beforeEach, describe, expect, it } from "vitest";
import { pick, unpickAll, usePicked } from "./compare";

describe("traces picked to be compared", () => {
  beforeEach(unpickAll);

  it("are at most two: a third replaces the first", () => {
    for (const id of [3, 5, 9]) pick(id, true);
    expect(usePicked().value).toEqual([5, 9]);
  });

  it("can be unpicked", () => {
    pick(3, true);
    pick(3, true);
    pick(5, true);
    pick(3, false);
    expect(usePicked().value).toEqual([5]);
  });
});
