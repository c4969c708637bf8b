/** The second build: one script and one style sheet, to be written into a standalone HTML file (export/html.py). */
import vue from "@vitejs/plugin-vue";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [vue()],
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
