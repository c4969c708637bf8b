import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import VirtualTable from "./VirtualTable.vue";

const rowsOf = (count: number): { name: string }[] => Array.from({ length: count }, (_, i) => ({ name: `op ${i}` }));
const columns = [{ key: "name", title: "Name", value: (row: { name: string }) => row.name }];

describe("a table scrolled to its end", () => {
  it("shows its first rows as soon as it has few rows", async () => {
    const table = mount(VirtualTable<{ name: string }>, {
      props: { label: "Ops", columns, rows: rowsOf(1000), rowKey: (row: { name: string }) => row.name },
    });
    const viewport = table.get("[role=grid]");
    viewport.element.scrollTop = 900 * 28;
    await viewport.trigger("scroll");
    expect(table.find("[role=gridcell]").text()).not.toBe("op 0");

    viewport.element.scrollTop = 0; // a browser does this when all rows fit; its scroll event comes later
    await table.setProps({ rows: rowsOf(5) });
    expect(table.findAll("[role=gridcell]").map((cell) => cell.text())).toEqual(rowsOf(5).map((row) => row.name));
  });
});
