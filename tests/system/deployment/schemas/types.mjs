// Validates custom resources whose types are in an npm package: values by the validators of the package,
// unknown fields, which these ignore, by its TypeScript types. Runs in the folder of node_modules.
//
// Standard input: an array of {module, object}. Prints a line for each error.
import { readFileSync } from "node:fs";
import ts from "typescript";

const items = JSON.parse(readFileSync(0, "utf8"));
const declarations = (module) => `node_modules/${module}.d.ts`;
const program = ts.createProgram(
  items.map(({ module }) => declarations(module)),
  { module: ts.ModuleKind.NodeNext, lib: ["lib.es5.d.ts"], strict: true, types: [] },
);
const checker = program.getTypeChecker();

function typeOf({ module, object }) {
  const file = program.getSourceFile(declarations(module));
  return file && checker.getDeclaredTypeOfSymbol(checker.getSymbolAtLocation(file).exports.get(`I${object.kind}`));
}

function* unknownFields(value, type, path) {
  if (value === null || typeof value !== "object") return;
  // A type that TypeScript does not find is any, too.
  if (type.flags & ts.TypeFlags.Any) yield `${path}: no type`;
  for (const [field, child] of Object.entries(value)) {
    const property = type.getProperty(field);
    const elements = Array.isArray(value) ? type.getNumberIndexType() : type.getStringIndexType();
    const found = property ? checker.getTypeOfSymbol(property) : elements;
    if (found) yield* unknownFields(child, checker.getNonNullableType(found), `${path}.${field}`);
    else yield `${path}.${field}: unknown field`;
  }
}

async function invalidValues({ module, object }) {
  const { [object.kind]: Model } = await import(module);
  try {
    new Model(object).validate();
    return [];
  } catch (error) {
    if (!error.errors) throw error;
    return error.errors.map(({ instancePath, message }) => `$${instancePath.replaceAll("/", ".")}: ${message}`);
  }
}

async function errorsOf(item) {
  const type = typeOf(item);
  return type ? [...unknownFields(item.object, type, "$"), ...(await invalidValues(item))] : [`no ${item.module}`];
}

for (const item of items) {
  const { kind, metadata } = item.object;
  for (const error of await errorsOf(item)) console.log(`${kind}/${metadata.name}: ${error}`);
}
