// Reads [{ kernel, shapes, limit }] from standard input and writes, of each, the plan of the glue in the folder that is named, and that of
// the interpreter where the limit is 0: none. A plan is how many runs, then the numbers of the first and of the last; null is a refusal.

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

function planByGlue(glue, { shapes, limit }) {
  try {
    const { runs } = glue.plan(shapes, limit || Number.MAX_SAFE_INTEGER);
    return [runs.length, ...(runs.length ? [...numbers(runs[0]), ...numbers(runs.at(-1))] : [])];
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const found = jobs.map(job => {
  const { glue, sidecar } = kernels[job.kernel];
  return { glue: planByGlue(glue, job), sidecar: job.limit ? null : interpret(sidecar, job.shapes) };
});
process.stdout.write(JSON.stringify(found));
