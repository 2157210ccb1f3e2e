// Translates WGSL with npm's naga-wasm: one JSON object a line on standard input, one on standard output, in the same order.
// Request {"wgsl": text, "language": "spirv" | "glsl" | "hlsl" | "msl", "entry_point": name}; answer {"data": base64} or {"error": text}.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const naga = await import(pathToFileURL(join(folder, "dist", "wasm", "naga.js")).href);
naga.initSync({ module: new WebAssembly.Module(readFileSync(join(folder, "dist", "wasm", "naga_bg.wasm"))) });

function write({ wgsl, language, entry_point: entryPoint }) {
  const module = naga.parseWgsl(wgsl);
  const info = naga.validate(module);
  switch (language) {
    case "spirv": {
      const words = naga.writeSpirv(module, info);
      return Buffer.from(words.buffer, words.byteOffset, words.byteLength);
    }
    case "glsl":
      return Buffer.from(naga.writeGlsl(module, info, { version: "310 es", stage: "compute", entryPoint }));
    case "hlsl":
      return Buffer.from(naga.writeHlsl(module, info));
    default:
      return Buffer.from(naga.writeMsl(module, info));
  }
}

process.stdout.write(JSON.stringify({ package: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version }) + "\n");
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    answer = { data: write(JSON.parse(line)).toString("base64") };
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
