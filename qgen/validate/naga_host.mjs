// Answers validation requests with npm's naga-wasm: one JSON object a line on standard input, one on standard output, in the same order.
// Request {"wgsl": text, "parse_only": bool}; answer {"outcome": "accepted" | "parse" | "validation" | "trap", "text": naga's own words}.
// A trap (a text nested too deeply for the module's stack) leaves the instance unusable, so the next request gets a fresh one.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const folder = process.argv[2];
const compiled = new WebAssembly.Module(readFileSync(join(folder, "dist", "wasm", "naga_bg.wasm")));
const glue = pathToFileURL(join(folder, "dist", "wasm", "naga.js")).href;

// Objects of a trapped instance are kept: their finalizers would call into it.
const abandoned = [];
let generation = 0;
let naga = await instantiate();

async function instantiate() {
  const instance = await import(`${glue}?generation=${generation}`);
  generation += 1;
  instance.initSync({ module: compiled });
  return instance;
}

function isTrap(error) {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError || !(error instanceof Error) || !error.message.startsWith("error");
}

function judge(wgsl, parseOnly) {
  let module = null;
  let stage = "parse";
  try {
    module = naga.parseWgsl(wgsl);
    if (!parseOnly) {
      stage = "validation";
      naga.validate(module).free();
    }
    module.free();
    return { outcome: "accepted", text: "" };
  } catch (error) {
    if (isTrap(error)) {
      abandoned.push(module);
      return { outcome: "trap", text: String(error?.message ?? error) };
    }
    module?.free();
    return { outcome: stage, text: error.message };
  }
}

const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const { nagaVersion } = await import(pathToFileURL(join(folder, "dist", "version.js")).href);
process.stdout.write(JSON.stringify({ package: version, naga: nagaVersion }) + "\n");

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const request = JSON.parse(line);
  const answer = judge(request.wgsl, request.parse_only);
  if (answer.outcome === "trap") {
    naga = await instantiate();
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
