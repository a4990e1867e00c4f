// Prints the sizes of a WebAssembly file and the modules that it imports from, as JSON.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const bytes = readFileSync(process.argv.at(-1));
const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes)).map((entry) => entry.module);
console.log(
  JSON.stringify({
    raw: bytes.length,
    gzip: gzipSync(bytes, { level: 9 }).length,
    imports: [...new Set(imports)],
  }),
);
