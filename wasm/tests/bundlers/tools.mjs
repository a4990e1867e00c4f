// The bundlers, and how each builds a page of the fixture. `dev` serves the page as during development; `build` writes
// files to a folder. `wasm` is the source of the module that locates the WebAssembly for `rakwire/slim`.

import { copyFile } from "node:fs/promises";
import { join } from "node:path";

import * as esbuild from "esbuild";

/** Returns a version of Vite as a tool. Its `dev` serves `root` until `stop`. */
function vite(version) {
  return {
    wasm: 'export { default } from "rakwire/raknet.wasm?url";',
    async dev(root) {
      const { createServer } = await import(`vite${version}`);
      const server = await createServer({ root, configFile: false, logLevel: "error", server: { port: 0, host: "127.0.0.1" } });
      await server.listen();
      return { url: server.resolvedUrls.local[0], stop: () => server.close() };
    },
    async build(root, outDir) {
      const { build } = await import(`vite${version}`);
      await build({ root, configFile: false, logLevel: "error", base: "./", build: { outDir, emptyOutDir: true } });
    },
  };
}

const webpackOptions = (root, mode) => ({
  mode,
  context: root,
  entry: "./main.js",
  output: { path: join(root, "webpack"), filename: "main.js" },
  performance: { hints: false },
});

/** The HTML page for bundlers that do not generate one. */
export const PAGE = '<!doctype html><meta charset="utf-8"><title>rakwire</title><script type="module" src="main.js"></script>';

const webpack = {
  wasm: 'export default new URL("rakwire/raknet.wasm", import.meta.url);',
  async dev(root) {
    const [{ default: compile }, { default: Server }] = await Promise.all([import("webpack"), import("webpack-dev-server")]);
    const compiler = compile({ ...webpackOptions(root, "development"), infrastructureLogging: { level: "error" } });
    const setupMiddlewares = (middlewares) => [
      { name: "page", path: "/", middleware: (request, response, next) => (request.path === "/" ? response.send(PAGE) : next()) },
      ...middlewares,
    ];
    const options = { host: "127.0.0.1", port: 0, static: false, hot: false, liveReload: false, setupMiddlewares };
    const server = new Server(options, compiler);
    await server.start();
    return { url: `http://127.0.0.1:${server.server.address().port}/`, stop: () => server.stop() };
  },
  async build(root, outDir) {
    const { default: compile } = await import("webpack");
    const compiler = compile({ ...webpackOptions(root, "production"), output: { path: outDir, filename: "main.js" } });
    const stats = await new Promise((resolve, reject) => compiler.run((error, done) => (error ? reject(error) : resolve(done))));
    await new Promise((resolve) => compiler.close(resolve));
    if (stats.hasErrors() || stats.hasWarnings()) {
      throw new Error(stats.toString());
    }
    return PAGE;
  },
};

const esbuildOptions = (root) => ({ entryPoints: [join(root, "main.js")], bundle: true, format: "esm", loader: { ".wasm": "file" }, logLevel: "error" });

const withEsbuild = {
  wasm: 'import path from "rakwire/raknet.wasm"; export default new URL(path, import.meta.url);',
  async dev(root) {
    const context = await esbuild.context({ ...esbuildOptions(root), outdir: join(root, "served"), write: false });
    const { port } = await context.serve({ host: "127.0.0.1", port: 0, servedir: root });
    return { url: `http://127.0.0.1:${port}/served.html`, page: ["served.html", PAGE.replace('src="', 'src="served/')], stop: () => context.dispose() };
  },
  async build(root, outDir) {
    await esbuild.build({ ...esbuildOptions(root), minify: true, outdir: outDir });
    return PAGE;
  },
};

const withRollup = {
  // Rollup does not copy assets by itself.
  wasm: 'export default new URL("raknet.wasm", import.meta.url);',
  async build(root, outDir) {
    const [{ rollup }, { nodeResolve }] = await Promise.all([import("rollup"), import("@rollup/plugin-node-resolve")]);
    const onwarn = (warning) => {
      throw new Error(warning.message);
    };
    const bundle = await rollup({ input: join(root, "main.js"), plugins: [nodeResolve({ browser: true })], onwarn });
    await bundle.write({ file: join(outDir, "main.js"), format: "es" });
    await bundle.close();
    await copyFile(join(root, "node_modules/rakwire/pkg/raknet.wasm"), join(outDir, "raknet.wasm"));
    return PAGE;
  },
};

const parcelOptions = async (root, outDir, mode) => {
  const { createRequire } = await import("node:module");
  return {
    entries: join(root, "index.html"),
    defaultConfig: createRequire(import.meta.url).resolve("@parcel/config-default"),
    projectRoot: root,
    cacheDir: join(root, ".parcel-cache"),
    mode,
    shouldAutoInstall: false,
    shouldDisableCache: true,
    defaultTargetOptions: { distDir: outDir, publicUrl: "./", shouldOptimize: mode === "production" },
  };
};

const parcel = {
  wasm: 'export default new URL("npm:rakwire/raknet.wasm", import.meta.url);',
  async dev(root) {
    const { Parcel } = await import("@parcel/core");
    const [{ createServer }, out] = [await import("node:net"), join(root, ".parcel-served")];
    // Parcel needs the number of a free port.
    const port = await new Promise((resolve) => {
      const probe = createServer().listen(0, "127.0.0.1", () => {
        const { port: free } = probe.address();
        probe.close(() => resolve(free));
      });
    });
    const options = await parcelOptions(root, out, "development");
    const target = { ...options.defaultTargetOptions, publicUrl: "/" };
    const tool = new Parcel({ ...options, serveOptions: { host: "127.0.0.1", port }, defaultTargetOptions: target });
    let watcher;
    await new Promise((resolve, reject) => {
      const onEvent = (error, event) => {
        if (event?.type === "buildSuccess") {
          resolve();
        } else {
          reject(error ?? new Error(JSON.stringify(event?.diagnostics)));
        }
      };
      tool.watch(onEvent).then((subscription) => (watcher = subscription), reject);
    });
    return { url: `http://127.0.0.1:${port}/`, stop: () => watcher.unsubscribe() };
  },
  async build(root, outDir) {
    const { Parcel } = await import("@parcel/core");
    await new Parcel(await parcelOptions(root, outDir, "production")).run();
  },
};

export const TOOLS = { "vite 6": vite(6), "vite 7": vite(7), "vite 8": vite(8), webpack, "esbuild": withEsbuild, "rollup": withRollup, parcel };
