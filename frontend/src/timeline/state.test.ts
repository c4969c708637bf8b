import { describe, expect, it } from "vitest";
import { rangeSpelling } from "./state";

describe("ranges in the URL", () => {
  const spelling = rangeSpelling();

  it("are read as they were written", () => {
    expect(spelling.write([1200, 98_000])).toBe("1200-98000");
    expect(spelling.read("1200-98000")).toEqual([1200, 98_000]);
    expect(spelling.write(null)).toBeUndefined();
  });

  it("are ignored if they are not valid", () => {
    for (const text of ["", "12", "a-b", "5-5", "9-3", "1-2-3", "1e400-2"]) expect(spelling.read(text)).toBeUndefined();
  });
});
