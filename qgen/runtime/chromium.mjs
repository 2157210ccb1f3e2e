// Runs jobs (see jobs.mjs) in one page of Chromium, without a window. Arguments: the folder of the npm package `playwright-core`, the
// browser's program, and the adapter that is wanted: `swiftshader`, or nothing for the browser's own choice, and SwiftShader where it has none.

import fs from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [folder, executablePath, wanted] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(folder, 'index.mjs')).href);
const script = fs.readFileSync(new URL('jobs.mjs', import.meta.url));

// WebGPU wants a secure context, which a page of the local host is.
const server = http.createServer((request, response) => {
  const isScript = request.url === '/jobs.mjs';
  response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
  response.end(isScript ? script : '<!doctype html><title>jobs</title>');
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));

async function launch(adapter) {
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-unsafe-webgpu',
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), ...(adapter ? [`--use-webgpu-adapter=${adapter}`] : [])],
  });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const hello = await page.evaluate(async () => {
    globalThis.jobs = await import('/jobs.mjs');
    globalThis.found = await globalThis.jobs.findAdapter(navigator.gpu);
    return globalThis.found?.hello ?? null;
  });
  return { browser, page, hello };
}

let { browser, page, hello } = await launch(wanted);
if (!hello && !wanted) {
  await browser.close();
  ({ browser, page, hello } = await launch('swiftshader'));
}
const say = object => new Promise(resolve => process.stdout.write(JSON.stringify(object) + '\n', resolve));
await say(hello ?? { error: 'no adapter' });
const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();
const { value: needs } = await lines.next();
if (needs) {
  await say(await page.evaluate(async wishes => {
    const { device, answer } = await globalThis.jobs.openDevice(globalThis.found.adapter, wishes);
    globalThis.device = device;
    return answer;
  }, JSON.parse(needs)));
  for await (const line of lines) await say(await page.evaluate(job => globalThis.jobs.runJob(globalThis.device, job), JSON.parse(line)));
}
await browser.close();
server.close();
