// Reads [{ kernel, shapes, limit }] from standard input and writes, of each, the plan of the glue in the folder that is named, and that of
// the interpreter; a limit of 0 is none. A plan is how many runs, then the numbers of the first, one amid and the last; null is a refusal.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { plan as interpret } from './interpreter.mjs';

const folder = process.argv[2];
const jobs = JSON.parse(fs.readFileSync(0, 'utf8'));
const kernels = {};
for (const name of new Set(jobs.map(job => job.kernel))) {
  const glue = await import(pathToFileURL(path.join(folder, `${name}.js`)));
  kernels[name] = { glue, sidecar: JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), 'utf8')) };
}

function numbers({ offsets, sizes, uniforms, dispatches }) {
  return [Object.values(offsets), Object.values(sizes), Object.values(uniforms).map(words => [...words]), dispatches].flat(3);
}

function planByGlue(glue, shapes, limit) {
  try {
    const { runs } = glue.plan(shapes, limit);
    const some = runs.length ? [runs[0], runs[Math.floor(runs.length / 2)], runs.at(-1)] : [];
    return [runs.length, ...some.flatMap(numbers)];
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const found = jobs.map(job => {
  const { glue, sidecar } = kernels[job.kernel];
  const limit = job.limit || Number.MAX_SAFE_INTEGER;
  return { glue: planByGlue(glue, job.shapes, limit), sidecar: interpret(sidecar, job.shapes, limit) };
});
process.stdout.write(JSON.stringify(found));
