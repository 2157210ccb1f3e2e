// Reads a list of WGSL texts from standard input and writes what wgsl_reflect finds in each: entry points with their resources, and structs.

import fs from 'node:fs';
import { ResourceType, WgslReflect } from 'wgsl_reflect/wgsl_reflect.module.js';

const SPACES = { [ResourceType.Uniform]: 'uniform', [ResourceType.Storage]: 'storage' };

// Name the type as WGSL does: the library gives a runtime-sized array the count 0.
const typeName = type => (type.isArray && type.count === 0 ? `array<${type.format.getTypeName()}>` : type.getTypeName());

function describe(text) {
  const found = new WgslReflect(text);
  return {
    overrides: found.overrides.map(override => override.name),
    entries: found.entry.compute.map(entry => ({
      name: entry.name,
      workgroupSize: entry.workgroupSize,
      resources: entry.resources.map(variable => ({
        name: variable.name,
        group: variable.group,
        binding: variable.binding,
        space: SPACES[variable.resourceType] ?? 'other',
        access: variable.access,
        type: typeName(variable.type),
      })),
    })),
    others: found.entry.vertex.length + found.entry.fragment.length,
    variables: found.getBindGroups().flat().map(variable => variable.name),
    structs: found.structs.map(struct => ({
      name: struct.name,
      size: struct.size,
      align: struct.align,
      members: struct.members.map(member => ({ name: member.name, type: typeName(member.type), offset: member.offset, size: member.size })),
    })),
  };
}

const texts = JSON.parse(fs.readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(texts.map(describe)));
