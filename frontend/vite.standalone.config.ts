/**
 * The second build: one script and one style sheet, to be written into a standalone HTML file (export/html.py). The script as
 * that file carries it, so that an export need not deflate it: its hash for the page's policy, and a line of base64.
 */
import vue from "@vitejs/plugin-vue";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const packed: Plugin = {
  name: "packed",
  enforce: "post",
  generateBundle(_options, bundle) {
    const script = bundle["standalone.js"];
    if (script?.type !== "chunk") throw new Error("the build made no standalone.js");
    const hash = `sha256-${createHash("sha256").update(script.code).digest("base64")}`;
    const source = `${hash}\n${deflateSync(script.code, { level: 9 }).toString("base64")}\n`;
    this.emitFile({ type: "asset", fileName: "standalone.script", source });
    delete bundle["standalone.js"];
  },
};

export default defineConfig({
  plugins: [vue(), packed],
  publicDir: false,
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  define: {
    __VUE_OPTIONS_API__: "false",
    __VUE_PROD_DEVTOOLS__: "false",
    "process.env.NODE_ENV": JSON.stringify("production"),
  },
  build: {
    outDir: "../tftracer/static",
    emptyOutDir: false,
    target: "es2022",
    cssCodeSplit: false,
    lib: {
      entry: fileURLToPath(new URL("./src/standalone.ts", import.meta.url)),
      formats: ["iife"],
      name: "tftracer",
      fileName: () => "standalone.js",
      cssFileName: "standalone",
    },
  },
});
