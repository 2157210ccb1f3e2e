// Reads a list of works (see glue.mjs) from standard input, imports the glue from the folder that is named, and runs all on Dawn in here.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { create, globals } from 'webgpu';
import { openDevice, runWork } from './glue.mjs';

Object.assign(globalThis, globals);
const folder = process.argv[2];
const works = JSON.parse(fs.readFileSync(0, 'utf8'));
const gpu = create([]);
const { device, adapter } = await openDevice(gpu);
const results = [];
for (const work of works) {
  const glue = await import(pathToFileURL(path.join(folder, `${work.kernel}.js`)));
  results.push(await runWork(device, glue, work));
}
device.destroy();
const text = JSON.stringify({ adapter, results });
await new Promise(resolve => process.stdout.write(text, resolve));
process.exit(0); // objects of a device that is gone must not be collected at exit
