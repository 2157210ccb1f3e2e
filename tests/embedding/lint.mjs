// Prints what ESLint has to say about the files that are named, wherever they lie.

import fs from 'node:fs';
import { ESLint } from 'eslint';
import config from './eslint.config.mjs';

const eslint = new ESLint({ overrideConfigFile: true, overrideConfig: config });
for (const file of process.argv.slice(2)) {
  const [{ messages }] = await eslint.lintText(fs.readFileSync(file, 'utf8'), { filePath: 'module.mjs' });
  for (const { line, message } of messages) console.log(`${file}:${line}: ${message}`);
}
