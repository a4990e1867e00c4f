import { defineConfig } from "vite";

const PAGES = ["canvas", "phaser", "pixi", "three"];

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    // Phaser alone exceeds Vite's limit for a chunk.
    chunkSizeWarningLimit: 2_000,
    rollupOptions: { input: Object.fromEntries(["index", ...PAGES].map((page) => [page, page === "index" ? "index.html" : `${page}/index.html`])) },
  },
  // The package is in a sibling folder.
  server: { fs: { allow: ["../.."] } },
});
