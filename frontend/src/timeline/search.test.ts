import { describe, expect, it } from "vitest";
import { modelOf } from "../../dev/timeline";
import { matchNumber, nextMatch, parseQuery, search, type Matches } from "./search";

const model = modelOf({
  rows: [
    [
      { start: 0, duration: 1, name: "layer/MatMul", op: "MatMul" },
      { start: 10, duration: 1, name: "layer/Relu", op: "Relu" },
    ],
    [
      { start: 5, duration: 1, name: "grad/matmul_1", op: "BatchMatMul" },
      { start: 5000, duration: 1, name: "größe(1)", op: "Sum" },
    ],
  ],
});

async function find(text: string, regex = false): Promise<Matches> {
  const query = parseQuery(text, regex);
  if (query.kind !== "ready") throw new Error(query.kind);
  return search(model, query.test, new AbortController().signal);
}

describe("search", () => {
  it("finds text in names and op types, ignoring case, in order of time", async () => {
    expect([...(await find("matmul")).slices]).toEqual([0, 2]);
    expect([...(await find("RELU")).slices]).toEqual([1]);
  });

  it("takes text literally unless it is a regular expression", async () => {
    expect([...(await find("größe(1)")).slices]).toEqual([3]);
    expect([...(await find("^layer/(MatMul|Relu)$", true)).slices]).toEqual([0, 1]);
    expect([...(await find("^layer/(MatMul|Relu)$")).slices]).toEqual([]);
  });

  it("says what is wrong with an expression", () => {
    expect(parseQuery("(", true)).toMatchObject({ kind: "invalid" });
    expect(parseQuery("(", false).kind).toBe("ready");
    expect(parseQuery("", true).kind).toBe("empty");
  });

  it("walks through the matches and around", async () => {
    const matches = await find("a");
    expect([...matches.slices]).toEqual([0, 2, 1]);
    const walk = [-1, 0, 2, 1].map((from) => nextMatch(model, matches, from, true));
    expect(walk).toEqual([0, 2, 1, 0]);
    expect([-1, 0, 1].map((from) => nextMatch(model, matches, from, false))).toEqual([1, 1, 2]);
    expect(nextMatch(model, matches, 3, true)).toBe(0);
    expect(matchNumber(matches, 2)).toBe(2);
    expect(matchNumber(matches, 3)).toBe(0);
  });

  it("returns -1 if there is no match", async () => {
    const matches = await find("nothing like it");
    expect(nextMatch(model, matches, 0, true)).toBe(-1);
  });

  it("stops for a newer search", async () => {
    const long = modelOf({
      rows: [Array.from({ length: 4000 }, (_, i) => ({ start: i, duration: 1, name: `n${i}` }))],
    });
    const aborter = new AbortController();
    let tests = 0;
    const slow = (): boolean => {
      // uses up the portion's time at once, so that the search lets the page run
      for (const until = performance.now() + 0.02; performance.now() < until;) tests += 0;
      if (++tests === 1) aborter.abort(new Error("a newer one"));
      return false;
    };
    await expect(search(long, slow, aborter.signal)).rejects.toThrow("a newer one");
    expect(tests).toBeLessThan(4000);
  });
});
