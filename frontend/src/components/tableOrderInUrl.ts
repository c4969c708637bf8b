/** A table's order in the URL: `sort=mean`, or `sort=-mean` for descending; no `sort` is the rows' own order. */
import type { Spelling } from "@/state/url";
import type { TableSort } from "./table";

export function tableOrder(): Spelling<TableSort | null> {
  return {
    initial: null,
    read: (text) => {
      const [, minus, key] = /^(-?)(\w+)$/.exec(text) ?? [];
      return key === undefined ? undefined : { key, descending: minus === "-" };
    },
    write: (sort) => (sort === null ? undefined : `${sort.descending ? "-" : ""}${sort.key}`),
  };
}
