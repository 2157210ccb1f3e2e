// Reads a list of works (see glue.mjs) from standard input, and runs all in a page that imports the glue from the folder that is named.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';

const folder = process.argv[2];
const works = JSON.parse(fs.readFileSync(0, 'utf8'));
const runner = new URL('glue.mjs', import.meta.url);

// WebGPU wants a secure context, which a page of the local host is.
const server = http.createServer((request, response) => {
  if (request.url === '/') {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>glue</title>');
  } else {
    const file = request.url === '/glue.mjs' ? runner : path.join(folder, path.basename(request.url));
    response.writeHead(fs.existsSync(file) ? 200 : 404, { 'content-type': 'text/javascript' });
    response.end(fs.existsSync(file) ? fs.readFileSync(file) : '');
  }
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
});
try {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const found = await page.evaluate(async list => {
    const { openDevice, runWork } = await import('/glue.mjs');
    const { device, adapter } = await openDevice(navigator.gpu);
    const results = [];
    for (const work of list) results.push(await runWork(device, await import(`/${work.kernel}.js`), work));
    return { adapter, results };
  }, works);
  const text = JSON.stringify(found);
  await new Promise(resolve => process.stdout.write(text, resolve));
} finally {
  await browser.close();
  server.close();
}
