/** A folder imports only from folders below it in this list; README.md says what each contains. */
import { describe, expect, it } from "vitest";

const ORDER = [
  "views",
  "workbench",
  "compare",
  "runs",
  "slow",
  "ledger",
  "steps",
  "job",
  "components",
  "timeline",
  "state",
  "client",
  "styles",
];
/** OUTSIDE: files in no folder. FOR_ALL: what every folder may import; `dev` is beside src/ and for tests. */
const OUTSIDE = ["App.vue", "main.ts", "router.ts", "standalone.ts", "format.ts", "env.d.ts"];
const FOR_ALL = ["format", "dev"];
const SOURCES = import.meta.glob<string>("./**/*.{ts,vue}", { query: "?raw", import: "default", eager: true });
const IMPORT = /(?:from|import|import\(|src=)\s*"((?:@\/|\.\.?\/)[^"]+)"/g;

/** Return the first part of a path under src/: a folder, or a file in no folder. */
function folderOf(path: string): string {
  return path.split("/")[0] ?? "";
}

function target(importer: string, specifier: string): string {
  if (specifier.startsWith("@/")) return specifier.slice(2);
  return new URL(specifier, `file:///frontend/src/${importer}`).pathname.replace(/^\/frontend\/(src\/)?/, "");
}

const arrows = Object.entries(SOURCES)
  .map(([path, source]) => [path.slice(2), source] as const)
  .flatMap(([path, source]) => [...source.matchAll(IMPORT)].map(([, to]) => [path, target(path, to ?? "")] as const))
  .filter(([from]) => ORDER.includes(folderOf(from)));

describe("the folders", () => {
  it("are all in the list", () => {
    const names = new Set(Object.keys(SOURCES).map((path) => folderOf(path.slice(2))));
    const folders = [...names].filter((name) => !OUTSIDE.includes(name) && !name.endsWith(".test.ts"));
    expect([...new Set([...folders, "styles"])].sort()).toEqual([...ORDER].sort());
  });

  it("import only from those below them", () => {
    expect(arrows.length).toBeGreaterThan(300);
    const wrong = arrows.filter(([from, to]) => {
      const [upper, lower] = [folderOf(from), folderOf(to)].map((name) => ORDER.indexOf(name)) as [number, number];
      return lower >= 0 ? lower < upper : !FOR_ALL.includes(folderOf(to));
    });
    expect(wrong.map(([from, to]) => `${from} -> ${to}`)).toEqual([]);
  });
});
