// A loader of packages as their card describes it: reads { folder, cases } from standard input and writes what a host does for each case.
//
// A case: { types: { TQ, TS, TF }, attributes, shapes: { tensor: [dims] }, limits: { maxComputeWorkgroupsPerDimension } }
// What a host does: { variant, wgsl, bindings: [{ name, space, access, nbytes, values }], dispatch: [x, y, z] }

import fs from 'node:fs';
import path from 'node:path';
import { Template } from '@huggingface/jinja';

const { folder, cases } = JSON.parse(fs.readFileSync(0, 'utf8'));
const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
const compiled = new Map();

function template(text) {
  if (!compiled.has(text)) compiled.set(text, new Template(text));
  return compiled.get(text);
}

const product = dims => dims.reduce((total, dim) => total * dim, 1);
const at = (shape, axis) => (axis < 0 ? axis + shape.length : axis);

// A tensor is passed to the functions of expressions by its name.
const functionsOn = shapes => ({
  numel: tensor => product(shapes[tensor]),
  rank: tensor => shapes[tensor].length,
  dim: (tensor, axis) => shapes[tensor][at(shapes[tensor], axis)],
  inner: (tensor, axis) => product(shapes[tensor].slice(at(shapes[tensor], axis) + 1)),
  ceilDiv: (a, b) => Math.ceil(a / b),
});

function evaluate(expression, scope) {
  const text = template(`{{ ${expression} }}`).render(scope);
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+$/.test(text) ? Number(text) : text;
}

const holds = (tests, scope) => tests.every(test => evaluate(test, scope) === true);

function derive(expressions, scope) {
  for (const [name, expression] of Object.entries(expressions)) scope[name] = evaluate(expression, scope);
}

function bind(entry, scope) {
  if (typeof entry === 'object') {
    const values = entry.struct.map(field => evaluate(field.value, scope));
    const fields = entry.struct.map(field => `${field.name}: ${field.type}`).join(', ');
    const declared = `struct Params { ${fields} }\n`;
    return { name: entry.key, space: 'uniform', access: 'read', nbytes: 4 * values.length, values, declared, type: 'Params' };
  }
  const binding = manifest.bindings[entry];
  if (binding.when && !evaluate(binding.when, scope)) return null;
  const access = binding.buffer === 'storage' ? 'read_write' : 'read';
  const nbytes = 4 * evaluate(binding.length, scope);
  return { name: entry, space: 'storage', access, nbytes, declared: '', type: `array<${binding.elementType}>` };
}

function declare(binding, number) {
  const space = binding.space === 'uniform' ? 'uniform' : `storage, ${binding.access}`;
  return `${binding.declared}@group(0) @binding(${number}) var<${space}> ${binding.name}: ${binding.type};`;
}

function prepare({ types, attributes, shapes, limits }) {
  const scope = { ...functionsOn(shapes), ...types, device: { limits }, DISPATCH_FOLD_WIDTH: limits.maxComputeWorkgroupsPerDimension };
  for (const name of Object.keys(shapes)) scope[name] = name;
  for (const [name, { default: value }] of Object.entries(manifest.attributes)) scope[name] = attributes[name] ?? value;
  scope.tunables = Object.fromEntries(Object.entries(manifest.tunables).map(([name, { default: value }]) => [name, value]));
  derive(manifest.derive, scope);
  if (!holds(manifest.when, scope)) throw new Error('the manifest does not take this case');
  const fitting = manifest.variants.filter(variant => holds(variant.when, scope)).sort((a, b) => b.priority - a.priority);
  if (fitting.length === 0) throw new Error('no variant takes this case');
  const [variant] = fitting;
  derive(variant.derive, scope);
  const [pass] = variant.passes;
  const bindings = pass.bindings.map(entry => bind(entry, scope)).filter(Boolean);
  scope.env = { wgsl: { resourceDeclarations: bindings.map(declare).join('\n') } };
  const wgsl = template(fs.readFileSync(path.join(folder, pass.shader), 'utf8')).render(scope);
  const dispatch = ['x', 'y', 'z'].map(axis => evaluate(pass.dispatch[axis], scope));
  return { variant: variant.id, wgsl, bindings: bindings.map(({ name, space, access, nbytes, values }) => ({ name, space, access, nbytes, values })), dispatch };
}

const text = JSON.stringify(cases.map(prepare));
await new Promise(resolve => process.stdout.write(text, resolve));
