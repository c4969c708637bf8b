import { describe, expect, it } from "vitest";
import { bookmarkSpelling, merged, MAX_BOOKMARKS } from "./bookmarks";

const { read, write } = bookmarkSpelling();

describe("bookmarks in a link", () => {
  it("are read as they were written", () => {
    const bookmarks = [
      { name: "warm-up, first: 50%", start_ns: 0, end_ns: 1_200_000 },
      { name: "все <b>", start_ns: 3_400_000, end_ns: null },
    ];
    expect(read(write(bookmarks) ?? "")).toEqual(bookmarks);
    expect(write([])).toBeUndefined();
  });

  it("are left out if they are invalid, and limited in number", () => {
    for (const wrong of [
      "",
      "a",
      "a:",
      ":5",
      "a:x",
      "a:-5",
      "a:5-5",
      "a:9-5",
      "a:1-2-3",
      "a:1:2",
      "%E0%A4:5",
      "a:1e400",
      "a:9999999999999999",
    ])
      expect(read(wrong)).toEqual([]);
    expect(read(Array(5000).fill("a:1").join(","))).toHaveLength(MAX_BOOKMARKS);
    expect(read(`${"x".repeat(5000)}:1`)?.[0].name).toHaveLength(100);
  });

  it("are shown with the saved ones, each once, by time", () => {
    const [a, b, c] = [5, 1, 3].map((start_ns) => ({ name: "m", start_ns, end_ns: null }));
    expect(merged([a, b], [{ ...a }, c])).toEqual([b, c, a]);
  });
});
