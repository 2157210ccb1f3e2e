// The formulas of a sidecar as a host in JavaScript evaluates them that has no glue, and with them the plan, in several runs where it has to be.

const OPERATIONS = {
  add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, min: (a, b) => Math.min(a, b), max: (a, b) => Math.max(a, b),
  floor_div: (a, b) => Math.floor(a / b), ceil_div: (a, b) => Math.ceil(a / b), mod: (a, b) => a % b,
  eq: (a, b) => Number(a === b), le: (a, b) => Number(a <= b), and: (a, b) => Number(a && b), or: (a, b) => Number(a || b),
};
const product = dims => dims.reduce((count, dim) => count * dim, 1);
const SHAPES = {
  numel: product, rank: shape => shape.length, dim: (shape, index) => shape.at(index),
  prod_dims: (shape, start, end) => product(shape.slice(start, end)),
  same_dims_except: (a, b, k) => Number(a.length === b.length && a.every((dim, i) => dim === b[i] || i === k || i === k + a.length)),
};

function value(formula, lets, shapes) {
  if (typeof formula === 'number') return formula;
  if (typeof formula === 'string') return value(lets[formula], lets, shapes);
  const [operation, ...operands] = formula;
  const evaluate = operand => value(operand, lets, shapes);
  const tensors = operation === 'same_dims_except' ? 2 : operation in SHAPES ? 1 : 0;
  if (tensors) return SHAPES[operation](...operands.slice(0, tensors).map(name => shapes[name]), ...operands.slice(tensors).map(evaluate));
  return operands.map(evaluate).reduce(OPERATIONS[operation]);
}

export function plan(sidecar, shapes, limit) {
  const { chunks } = sidecar;
  const lets = { ...sidecar.let, ...chunks?.let, limit, start: 0 };
  const evaluate = (formula, own = {}) => value(formula, { ...lets, ...own }, shapes);
  const first = sidecar.buffers.find(buffer => buffer.role === 'input').name;
  if (sidecar.shape && String(sidecar.shape) !== String(shapes[first])) return null;
  const onShapes = sidecar.constraints.filter(readsShapes);
  if (!onShapes.every(constraint => evaluate(constraint))) return null;
  const buffers = sidecar.buffers.filter(buffer => buffer.role !== 'ignored' && buffer.role !== 'uniform');
  const sizes = buffers.map(buffer => evaluate(buffer.size_bytes));
  if (buffers.some((buffer, index) => buffer.role === 'output' && sizes[index] === 0)) return [0];
  const structs = sidecar.buffers.filter(buffer => buffer.role === 'uniform').map(buffer => sidecar.structs[buffer.struct]);
  const count = chunks ? evaluate(chunks.count) : 1;
  const isOne = !chunks || (count <= chunks.most && Math.max(...sizes) <= limit);
  const length = isOne ? count : evaluate(chunks.length);
  if (length === 0) return null;
  const runs = Math.ceil(count / length);
  const found = [runs];
  for (const index of [0, Math.floor(runs / 2), runs - 1]) {
    const start = index * length;
    const own = chunks ? { start, [chunks.count]: Math.min(length, count - start) } : {};
    const bound = buffers.map(({ name, element }, number) => {
      const bind = chunks?.bind.find(each => each.buffers.includes(name));
      if (!bind) return [0, sizes[number]];
      return [evaluate(bind.first, own) * element.bits / 8, 4 * Math.ceil(evaluate(bind.count, own) * element.bits / 32)];
    });
    if (bound.some(([, size]) => size === 0 || size > limit)) return null;
    if (!sidecar.constraints.every(constraint => onShapes.includes(constraint) || evaluate(constraint, own))) return null;
    const fields = structs.flatMap(struct => struct.fields.map(field => evaluate(field.value, own)));
    const dispatches = sidecar.passes.flatMap(pass => pass.dispatch.map(workgroups => evaluate(workgroups, own)));
    found.push(...bound.map(([offset]) => offset), ...bound.map(([, size]) => size), ...fields, ...dispatches);
  }
  return found;
}

function readsShapes(formula) {
  return Array.isArray(formula) && (formula[0] in SHAPES || formula.slice(1).some(readsShapes));
}
