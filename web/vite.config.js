import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    // PixiJS alone exceeds Vite's default limit for a chunk.
    chunkSizeWarningLimit: 1_000,
    rollupOptions: { input: { game: "index.html", echo: "echo.html", overhead: "overhead.html", servers: "servers.html" } },
  },
  // The packages are in sibling folders.
  server: { fs: { allow: [".."] } },
});
