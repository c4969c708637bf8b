import vue from "@vitejs/plugin-vue";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { notices } from "./notices";

/** Where `npm run dev` finds a running tftracer (TFTRACER=http://127.0.0.1:9999). */
const server = process.env["TFTRACER"] ?? "http://127.0.0.1:9999";

export default defineConfig({
  plugins: [vue(), notices],
  base: "./",
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  define: { __VUE_OPTIONS_API__: "false", __VUE_PROD_DEVTOOLS__: "false" },
  build: {
    outDir: "../tftracer/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { proxy: { "/api": { target: server, ws: true, changeOrigin: true } } },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "tests/**/*.test.ts"] },
});
