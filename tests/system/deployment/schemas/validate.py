"""Validates rendered objects: `python validate.py PACKAGES SCHEMAS [CRDS] <objects.json`.

Objects of Kubernetes itself are validated against its schemas of two versions, strictly. Custom resources are
validated by the npm packages that package.json names, which are installed in PACKAGES, or else against the schemas in
SCHEMAS; and against the CRDs in CRDS, if it is given. Unknown fields are errors. The rules of CRDs in CEL are not
evaluated.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from kubernetes_validate import utils

# The oldest and the newest version that the manifests are for.
KUBERNETES_VERSIONS = ("1.33", "1.37")

# The packages with types and validators of custom resources, by group. They are generated from the Go types of
# Gateway API 1.5, CloudNativePG 1.29 and the Prometheus operator 0.91, from which these projects generate their
# CRDs.
PACKAGES = {
    "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
    "postgresql.cnpg.io": "@kubernetes-models/cloudnative-pg",
}

Schemas = dict[tuple[str, str], dict[str, Any]]


def main() -> int:
    """Print each error, and return the exit code."""
    utils.schema_contents = functools.cache(utils.schema_contents)
    packages, schemas, *crds = map(Path, sys.argv[1:])
    items = json.load(sys.stdin)
    custom = [item for item in items if is_custom(item)]
    errors = [
        *(error for item in items if item not in custom for error in validate_builtin(item)),
        *validate_types([item for item in custom if group(item) in PACKAGES], packages),
        *validate_custom([item for item in custom if group(item) not in PACKAGES], schemas),
        *(error for folder in crds for error in validate_custom(custom, folder)),
    ]
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


def validate_builtin(item: dict[str, Any]) -> Iterator[str]:
    """The errors of an object of Kubernetes itself."""
    for version in KUBERNETES_VERSIONS:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except utils.ValidationError as error:
            yield f"{title(item)}: Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        except utils.SchemaNotFoundError as error:
            yield f"{title(item)}: {error.message}"


def validate_types(items: list[dict[str, Any]], packages: Path) -> list[str]:
    """The errors of objects whose types are in PACKAGES."""
    modules = [
        {"module": f"{PACKAGES[group(item)]}/{item['apiVersion']}/{item['kind']}", "object": item} for item in items
    ]
    # A program on the command line finds its packages from the current folder, and the file is in another.
    script = Path(__file__).with_name("types.mjs").read_text()
    node = [Path(sys.executable).with_name("node"), "--input-type=module", "--eval", script]
    run = subprocess.run(node, cwd=packages, input=json.dumps(modules), stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.splitlines()


def validate_custom(items: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    """The errors of objects by the schemas of a folder."""
    schemas = load_schemas(folder)
    for item in items:
        schema = schemas.get((item["apiVersion"], item["kind"]))
        if schema is None:
            yield f"{title(item)}: no schema for {item['apiVersion']}"
            continue
        for error in jsonschema.Draft202012Validator(schema).iter_errors(item):
            yield f"{title(item)}: {error.json_path}: {error.message}"


def title(item: dict[str, Any]) -> str:
    """The kind and the name of an object."""
    return f"{item['kind']}/{item['metadata']['name']}"


def group(item: dict[str, Any]) -> str:
    """The API group of an object; empty for the core."""
    return item["apiVersion"].rpartition("/")[0]


def is_custom(item: dict[str, Any]) -> bool:
    """Whether the object is of a custom resource, by its group."""
    return group(item) in PACKAGES or ("." in group(item) and not group(item).endswith(".k8s.io"))


def load_schemas(folder: Path) -> Schemas:
    """The schemas of a folder by version and kind: CRDs, or files of the same form."""
    schemas = {}
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            spec = document["spec"]
            for version in spec["versions"]:
                key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                schema = strict(version["schema"]["openAPIV3Schema"])
                properties = schema["properties"]
                schemas[key] = schema | {"properties": properties | {"apiVersion": {}, "kind": {}, "metadata": {}}}
    return schemas


def strict(schema: Any) -> Any:
    """A structural schema of Kubernetes as a JSON schema that rejects unknown fields."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: strict(property_) for name, property_ in value.items()}
        elif key in ("items", "additionalProperties", "allOf", "anyOf", "oneOf", "not"):
            result[key] = strict(value)
        elif key not in ("default", "format", "description", "enum") and not key.startswith("x-"):
            result[key] = value
    if "enum" in schema:
        result["enum"] = schema["enum"]
    if "properties" in schema and schema.get("type") == "object":
        open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        if not open_ended:
            result["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("nullable") and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    return result


if __name__ == "__main__":
    sys.exit(main())
