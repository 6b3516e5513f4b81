"""Validates rendered objects: `python validate.py SCHEMAS [CRDS] <objects.json`.

Objects of Kubernetes itself are validated against its schemas of two versions, strictly. Custom resources are
validated against the schemas in SCHEMAS and, if the folder is there, against the CRDs in CRDS. Unknown fields are
errors. The rules of CRDs in CEL are not evaluated.
"""

import functools
import json
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

Schemas = dict[tuple[str, str], dict[str, Any]]


def main() -> int:
    """Print each error, and return the exit code."""
    utils.schema_contents = functools.cache(utils.schema_contents)
    sources = [load_schemas(Path(folder)) for folder in sys.argv[1:]]
    errors = [error for item in json.load(sys.stdin) for error in validate(item, sources)]
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


def validate(item: dict[str, Any], sources: list[Schemas]) -> Iterator[str]:
    """The errors of an object."""
    name = f"{item['kind']}/{item['metadata']['name']}"
    if is_custom(item):
        for schemas in sources:
            schema = schemas.get((item["apiVersion"], item["kind"]))
            if schema is None:
                yield f"{name}: no schema for {item['apiVersion']}"
                continue
            for error in jsonschema.Draft202012Validator(schema).iter_errors(item):
                yield f"{name}: {error.json_path}: {error.message}"
        return
    for version in KUBERNETES_VERSIONS:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except utils.ValidationError as error:
            yield f"{name}: Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}"
        except utils.SchemaNotFoundError as error:
            yield f"{name}: {error.message}"


def is_custom(item: dict[str, Any]) -> bool:
    """Whether the object is of a custom resource, by its group."""
    group, slash, _ = item["apiVersion"].partition("/")
    return bool(slash) and "." in group and (group == "gateway.networking.k8s.io" or not group.endswith(".k8s.io"))


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
