/** A table's order, as it is written in the URL. */
import { describe, expect, it } from "vitest";
import { tableOrder } from "./tableOrderInUrl";

describe("a table's order in the URL", () => {
  it("reads what it writes", () => {
    const { read, write } = tableOrder();
    for (const order of [
      { key: "mean", descending: true },
      { key: "key", descending: false },
    ])
      expect(read(write(order)!)).toEqual(order);
    expect(write(null)).toBeUndefined();
    for (const wrong of ["", "-", "a b", "--x"]) expect(read(wrong)).toBeUndefined();
  });
});
