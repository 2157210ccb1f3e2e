// Reads a list of jobs (see jobs.mjs) from standard input, runs them in one page of Chromium, and writes { adapter, results }.

import fs from 'node:fs';
import http from 'node:http';
import { chromium } from 'playwright-core';

const BATCH = 16; // jobs in one message to the page
const jobs = JSON.parse(fs.readFileSync(0, 'utf8'));
const script = fs.readFileSync(new URL('jobs.mjs', import.meta.url));

// WebGPU wants a secure context, which a page of the local host is.
const server = http.createServer((request, response) => {
  const isScript = request.url === '/jobs.mjs';
  response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
  response.end(isScript ? script : '<!doctype html><title>jobs</title>');
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
  const adapter = await page.evaluate(async () => {
    const { openDevice, runJob } = await import('/jobs.mjs');
    const { device, adapter } = await openDevice(navigator.gpu);
    globalThis.runOne = job => runJob(device, job);
    return adapter;
  });
  const results = [];
  for (let start = 0; start < jobs.length; start += BATCH) {
    results.push(...await page.evaluate(async batch => {
      const found = [];
      for (const job of batch) found.push(await globalThis.runOne(job));
      return found;
    }, jobs.slice(start, start + BATCH)));
  }
  const text = JSON.stringify({ adapter, results });
  await new Promise(resolve => process.stdout.write(text, resolve));
} finally {
  await browser.close();
  server.close();
}
