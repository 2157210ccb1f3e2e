// Runs jobs (see jobs.mjs) on Dawn in this process. Arguments: the folder of the npm package `webgpu`.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { findAdapter, openDevice, runJob } from './jobs.mjs';

const require = createRequire(join(process.argv[2], 'package.json'));
const { create, globals } = await import(pathToFileURL(require.resolve(process.argv[2])).href);
Object.assign(globalThis, globals);

const say = object => new Promise(resolve => process.stdout.write(JSON.stringify(object) + '\n', resolve));
const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();
const gpu = create([]);
const found = await findAdapter(gpu);
await say(found ? found.hello : { error: 'no adapter' });
const { value: needs } = await lines.next();
const { device, answer } = await openDevice(found.adapter, JSON.parse(needs));
await say(answer);
for await (const line of lines) await say(await runJob(device, JSON.parse(line)));
device.destroy();
process.exit(0); // objects of a device that is gone must not be collected at exit
