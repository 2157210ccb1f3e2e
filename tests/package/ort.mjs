// Reads { folder, names } from standard input, builds the templates there with ONNX Runtime's tool, and writes for each name the parts of
// the shader that the provider puts together: the body of the main function, and what stands beside it.

import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { build } from '@fs-eire/wgsl-template';

const { folder, names } = JSON.parse(fs.readFileSync(0, 'utf8'));
for (const generator of ['static-cpp', 'static-cpp-literal', 'dynamic']) {
  const outDir = path.join(folder, generator);
  const result = await build({ sourceDirs: [folder], outDir, templateExt: '.wgsl.template', generator });
  if (result.status !== 'success') throw result.error ?? new Error(result.status);
}
const context = vm.createContext({});
vm.runInContext(fs.readFileSync(path.join(folder, 'dynamic', 'templates.js'), 'utf8'), context);
const shaders = names.map(name => {
  const shader = { main: '', beside: '' };
  const helper = {
    appendMainFunctionBody: code => { shader.main += code; },
    appendAdditionalImplementation: code => { shader.beside += code; },
  };
  context.$templates[name]({}, {}, helper);
  return shader;
});
process.stdout.write(JSON.stringify(shaders));
