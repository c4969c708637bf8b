/** The licences of the packages of which the built page holds code, in one file beside it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const modules = fileURLToPath(new URL("./node_modules", import.meta.url));
/** Modules that a tool writes into the page itself. */
const written: [prefix: string, tool: string][] = [
  ["\0plugin-vue:", "@vitejs/plugin-vue"],
  ["\0vite/", "vite"],
];

interface Package {
  name: string;
  version: string;
  license: string;
}

function folderOf(module: string): string | undefined {
  const tool = written.find(([prefix]) => module.startsWith(prefix))?.[1];
  if (tool) return join(modules, tool);
  if (!module.includes("/node_modules/")) return undefined;
  const file = module.replace(/^\0/, "").replace(/\?.*$/, "");
  for (let folder = dirname(file); folder.includes("/node_modules/"); folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json")) && read(folder).name) return folder;
  }
  throw new Error(`${module} belongs to no package`);
}

function read(folder: string): Package {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf-8")) as Package;
}

function notice(folder: string): string {
  const { name, version, license } = read(folder);
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each));
  if (!file) throw new Error(`${name} ships no licence text`);
  const text = readFileSync(join(folder, file), "utf-8").replace(/^# Licenses of bundled dependencies[^]*/m, "");
  return `${name} ${version} (${license})\n\n${text.replace(/\r\n/g, "\n").trim()}\n`;
}

export const notices: Plugin = {
  name: "notices",
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((part) => part.type === "chunk");
    const folders = chunks.flatMap((chunk) => Object.keys(chunk.modules).map(folderOf)).filter((folder) => folder !== undefined);
    const parts = [...new Set(folders)].map(notice).sort();
    const head = "The page of tftracer holds code of these packages.\n";
    const line = `\n${"-".repeat(80)}\n`;
    this.emitFile({ type: "asset", fileName: "THIRD_PARTY_NOTICES.txt", source: [head, ...parts].join(line) });
  },
};
