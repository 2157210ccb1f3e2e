// Reads a list of jobs (see jobs.mjs) from standard input, runs them on Dawn in this process, and writes { adapter, results }.

import fs from 'node:fs';
import { create, globals } from 'webgpu';
import { openDevice, runJob } from './jobs.mjs';

Object.assign(globalThis, globals);
const jobs = JSON.parse(fs.readFileSync(0, 'utf8'));
const gpu = create([]);
const { device, adapter } = await openDevice(gpu);
const results = [];
for (const job of jobs) results.push(await runJob(device, job));
device.destroy();
const text = JSON.stringify({ adapter, results });
await new Promise(resolve => process.stdout.write(text, resolve));
process.exit(0); // objects of a device that is gone must not be collected at exit
