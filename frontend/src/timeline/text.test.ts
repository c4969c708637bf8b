import { describe, expect, it } from "vitest";
import { TextFitter } from "./text";

const fitter = new TextFitter((text) => text.length * 6);

describe("TextFitter", () => {
  it("gives the whole name, its last part, a beginning of it, or nothing", () => {
    expect(fitter.fit("model/dense/MatMul", 200)).toBe("model/dense/MatMul");
    expect(fitter.fit("model/dense/MatMul", 40)).toBe("MatMul");
    expect(fitter.fit("model/dense/MatMul", 32)).toBe("MatM…");
    expect(fitter.fit("model/dense/MatMul", 20)).toBe("");
  });

  it("never gives more than fits", () => {
    for (let room = 0; room < 150; room += 7) {
      expect(fitter.width(fitter.fit("a/really_long_name_of_an_op/größe", room))).toBeLessThanOrEqual(room);
    }
  });
});
