// The formulas of a sidecar as a host in JavaScript evaluates them that has no glue, and with them the plan of tensors that are not parted.

const OPERATIONS = {
  add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, min: (a, b) => Math.min(a, b), max: (a, b) => Math.max(a, b),
  floor_div: (a, b) => Math.floor(a / b), ceil_div: (a, b) => Math.ceil(a / b), mod: (a, b) => a % b,
  eq: (a, b) => Number(a === b), le: (a, b) => Number(a <= b), and: (a, b) => Number(a && b), or: (a, b) => Number(a || b),
};
const product = dims => dims.reduce((count, dim) => count * dim, 1);
const SHAPES = {
  numel: product, rank: shape => shape.length, dim: (shape, index) => shape.at(index),
  prod_dims: (shape, start, end) => product(shape.slice(start, end)),
};

function value(formula, lets, shapes) {
  if (typeof formula === 'number') return formula;
  if (typeof formula === 'string') return value(lets[formula], lets, shapes);
  const [operation, ...operands] = formula;
  const evaluate = operand => value(operand, lets, shapes);
  if (operation in SHAPES) return SHAPES[operation](shapes[operands[0]], ...operands.slice(1).map(evaluate));
  return operands.map(evaluate).reduce(OPERATIONS[operation]);
}

export function plan(sidecar, shapes) {
  const evaluate = formula => value(formula, sidecar.let, shapes);
  const first = sidecar.buffers.find(buffer => buffer.role === 'input').name;
  if (sidecar.shape && String(sidecar.shape) !== String(shapes[first])) return null;
  if (!sidecar.constraints.every(evaluate)) return null;
  const buffers = sidecar.buffers.filter(buffer => buffer.role !== 'ignored' && buffer.role !== 'uniform');
  const sizes = buffers.map(buffer => evaluate(buffer.size_bytes));
  if (buffers.some((buffer, index) => buffer.role === 'output' && sizes[index] === 0)) return [0];
  const structs = sidecar.buffers.filter(buffer => buffer.role === 'uniform').map(buffer => sidecar.structs[buffer.struct]);
  const fields = structs.flatMap(struct => struct.fields.map(field => evaluate(field.value)));
  const dispatches = sidecar.passes.flatMap(pass => pass.dispatch.map(evaluate));
  const run = [...sizes.map(() => 0), ...sizes, ...fields, ...dispatches];
  return [1, ...run, ...run];
}
