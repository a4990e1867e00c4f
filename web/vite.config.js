import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    // Most of it is PixiJS, which the page needs as a whole.
    chunkSizeWarningLimit: 1_000,
    rollupOptions: { input: { game: "index.html", echo: "echo.html" } },
  },
  // The packages are folders beside this one.
  server: { fs: { allow: [".."] } },
});
