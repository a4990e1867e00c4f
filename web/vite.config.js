import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: { target: "es2022" },
  // The package is a folder beside this one.
  server: { fs: { allow: [".."] } },
});
