// Imports `page.mjs` of the folder that is named, in Node or in a page of Chromium, and prints what it exports as `result`.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [host, folder] = process.argv.slice(2);

async function runInNode() {
  const { create, globals } = await import('webgpu');
  Object.assign(globalThis, globals);
  Object.defineProperty(globalThis, 'navigator', { value: { gpu: create([]) } });
  return (await import(pathToFileURL(path.join(folder, 'page.mjs')))).result;
}

async function runInPage() {
  const { chromium } = await import('playwright-core');
  const server = http.createServer((request, response) => {
    const file = path.join(folder, request.url);
    const isPage = request.url === '/';
    const isThere = isPage || fs.existsSync(file);
    response.writeHead(isThere ? 200 : 404, { 'content-type': isPage ? 'text/html' : 'text/javascript' });
    response.end(isPage ? '<!doctype html><title>README</title>' : isThere ? fs.readFileSync(file) : '');
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const args = ['--no-sandbox', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return await page.evaluate(async () => (await import('/page.mjs')).result);
  } finally {
    await browser.close();
    server.close();
  }
}

const text = JSON.stringify(await (host === 'node' ? runInNode() : runInPage()));
await new Promise(resolve => process.stdout.write(text, resolve));
process.exit(0); // objects of a device that is gone must not be collected at exit
