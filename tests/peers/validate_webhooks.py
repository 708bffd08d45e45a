"""Compares webhooks that arrived with the section `webhooks` of an OpenAPI document.

stdin: {"document": …, "requests": [{"headers": {…}, "body": "…"}]}. Exit status 1 with a line for each
request that isn't as described.
"""

import json
import sys

import jsonschema_rs


def closed(schema, components):
    """The same schema with what it refers to, but a field that it doesn't know is wrong."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            schema = components[schema["$ref"].removeprefix("#/components/schemas/")]
        schema = {key: closed(value, components) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    return schema


def main():
    given = json.load(sys.stdin)
    webhooks = given["document"]["webhooks"]
    components = given["document"]["components"]["schemas"]
    seen, wrong = set(), []
    for request in given["requests"]:
        body = json.loads(request["body"])
        operation = webhooks[body["event"]]["post"]
        seen.add(body["event"])
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        validator = jsonschema_rs.Draft202012Validator(closed(schema, components), validate_formats=True)
        wrong += [f"{body['event']}: {error.message}" for error in validator.iter_errors(body)]
        for parameter in operation["parameters"]:
            value = request["headers"][parameter["name"]]
            header = jsonschema_rs.Draft202012Validator(parameter["schema"])
            wrong += [f"{parameter['name']}: {error.message}" for error in header.iter_errors(value)]
    wrong += [f"{name}: none arrived" for name in sorted(webhooks.keys() - seen)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
