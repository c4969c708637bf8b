import { describe, expect, it } from "vitest";
import { pattern } from "./linearRegex";

const TEXTS = ["", "a", "aab", "layer/MatMul_1", "größe(1)", "a b_c-9", "{x}", "tower_12/Relu", "中文", "A\\B", "9_9"];
const PATTERNS = [
  "a",
  "^a",
  "b$",
  "a*b",
  "(a|b)+$",
  "mat(mul|add)_\\d",
  "^tower_\\d{2}/",
  "[^a-z/_]",
  "\\bb",
  "\\Bb",
  "x?",
];
PATTERNS.push(
  "\\p{L}{4}",
  "ß",
  "\\u{4e2d}",
  "[\\]\\[{}]",
  "(?:a|aa)$",
  "(?<name>l|t).*_",
  "a{2,}",
  "a{0,1}b",
  "\\(1\\)",
  "^$",
  ".+?c",
  "|z",
);

describe("pattern", () => {
  it.each(PATTERNS)("finds what the browser's own engine finds: %s", (text) => {
    const expected = new RegExp(text, "iu");
    expect(TEXTS.filter(pattern(text))).toEqual(TEXTS.filter((candidate) => expected.test(candidate)));
  });

  it.each(["(a+)+$", "(a|a)*b", "^(.*a){20}$", "^(\\w+\\s?)*$", "(a|aa)+$"])(
    "ends soon where backtracking would not: %s",
    (text) => {
      expect(pattern(text)("a".repeat(200_000) + "!")).toBe(false);
    },
  );

  it.each([
    ["(", /group|parenthes/i],
    ["a**", /repeat/i],
    ["(?=a)b", /look-around/],
    ["(?<!a)b", /look-around/],
    ["(a)\\1", /back references/],
    ["(a{100}){100}", /too large/],
  ])("says what is wrong with %s", (text, problem) => {
    expect(() => pattern(text)).toThrow(problem);
  });

  it("refuses a pattern that needs too many states", () => {
    let seed = 1;
    const next = (): string => ((seed = (seed * 48271) % 2147483647) % 2 === 0 ? "a" : "b");
    expect(() => pattern("(a|b)*a(a|b){200}c")(Array.from({ length: 100_000 }, next).join(""))).toThrow(/too complex/);
  });
});
