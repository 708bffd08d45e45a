"""Writes what the providers' own packages say of their interfaces, in one form for all of them, as JSON files.

    contracts.py PACKAGES FOLDER

PACKAGES holds the wheels (`google_api_python_client-*.whl`, `msgraph_sdk-*.whl`, `stripe-*.whl`), FOLDER gets
`gmail.json`, `graph.json` and a `stripe-VERSION.json` for each version of Stripe's interface. Each file has
`operations` (method, path, query, body, media: whether a message may be the body) and `types` by name. A type is
`string` (with `enum`), `integer`, `number`, `boolean`, `any`, `array` (`items`), `map` (`values`), `object`
(`fields`, each with `type` and `required`), `union` (`of`) or `ref` (`name`). Nothing is imported, only read.
"""

import ast
import json
import pathlib
import posixpath
import re
import sys
import zipfile


def wheel(packages, name):
    found = sorted(packages.glob(f"{name}-*.whl"))
    if not found:
        sys.exit(f"contracts.py: {packages} has no wheel of {name}")
    return found


def kind(kind, /, **more):
    return {"kind": kind, **more}


# Gmail: a discovery document.


def discovered(schema):
    if "$ref" in schema:
        return kind("ref", name=schema["$ref"])
    match schema.get("type"):
        case "array":
            return kind("array", items=discovered(schema["items"]))
        case "object" if "additionalProperties" in schema:
            return kind("map", values=discovered(schema["additionalProperties"]))
        case "object":
            fields = {
                name: {"type": discovered(field), "required": bool(field.get("required"))}
                for name, field in schema.get("properties", {}).items()
            }
            return kind("object", fields=fields)
        case "string" if "enum" in schema:
            return kind("string", enum=schema["enum"])
        # 64-bit numbers are written as texts.
        case "string" | "integer" | "number" | "boolean" as name:
            return kind(name)
        case _:
            return kind("any")


def methods(resource):
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from methods(inner)


def gmail(packages):
    path = "googleapiclient/discovery_cache/documents/gmail.v1.json"
    with zipfile.ZipFile(wheel(packages, "google_api_python_client")[-1]) as archive:
        document = json.loads(archive.read(path))
    everywhere = document["parameters"]
    operations = []
    for method in methods(document):
        parameters = {
            name: {"type": discovered(parameter), "required": bool(parameter.get("required"))}
            for name, parameter in {**everywhere, **method.get("parameters", {})}.items()
            if parameter["location"] == "query"
        }
        for name, parameter in method.get("parameters", {}).items():
            if parameter.get("repeated"):
                parameters[name]["type"] = kind("array", items=parameters[name]["type"])
        request = method.get("request")
        operation = {
            "method": method["httpMethod"],
            "path": "/" + method["path"],
            "query": kind("object", fields=parameters),
            "body": discovered(request) if request else None,
            "media": False,
            "scopes": method.get("scopes", []),
        }
        operations.append(operation)
        upload = method.get("mediaUpload")
        if upload:
            uploaded = {**parameters, "uploadType": {"type": kind("string"), "required": True}}
            simple = upload["protocols"]["simple"]["path"]
            operations.append(
                {
                    **operation,
                    "path": simple,
                    "query": kind("object", fields=uploaded),
                    "body": None,
                    "media": True,
                    "accept": upload["accept"],
                    "bytes": int(upload["maxSize"]),
                }
            )
    types = {name: discovered(schema) for name, schema in document["schemas"].items()}
    return {"operations": operations, "types": types}


# Microsoft Graph: the generated request builders and models of msgraph-sdk.

# What the documents have beside the description: a message in base64 as text/plain.
MIME = {"/v1.0/me/messages", "/v1.0/me/sendMail"}

GRAPH_FOLDERS = [
    "msgraph/generated/users/item/messages/",
    "msgraph/generated/users/item/mail_folders/item/messages/",
    "msgraph/generated/users/item/send_mail/",
]
GRAPH_BUILDERS = ["msgraph/generated/users/item/user_item_request_builder.py"]
PRIMITIVE = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "datetime": "string",
    "date": "string",
    "bytes": "string",
    "uuid": "string",
    "timedelta": "string",
}


class Graph:
    def __init__(self, archive):
        self.archive = archive
        self.names = set(archive.namelist())
        self.types = {}

    def source(self, path):
        return self.archive.read(path).decode()

    def imported(self, path, source, name):
        """The file that a name comes from, by the file's relative imports."""
        found = re.search(rf"^\s*from (\.+)([\w.]+) import {name}$", source, re.M)
        if not found:
            return path
        folder = posixpath.dirname(path)
        for _ in found.group(1)[1:]:
            folder = posixpath.dirname(folder)
        return f"{folder}/{found.group(2).replace('.', '/')}.py"

    def model(self, path, source, name):
        """A reference to a model, which is read the first time."""
        file = self.imported(path, source, name)
        if name not in self.types:
            self.types[name] = None
            text = self.source(file)
            if "(str, Enum)" in text:
                words = re.findall(r'^    \w+ = "([^"]*)",?$', text, re.M)
                self.types[name] = kind("string", enum=words)
            else:
                self.types[name] = kind("object", fields=self.fields(file, text, name))
        return kind("ref", name=name)

    def fields(self, path, source, name):
        parent = re.search(rf"^class {name}\((\w+)", source, re.M).group(1)
        fields = {}
        if parent not in ("AdditionalDataHolder", "BackedModel", "Parsable"):
            file = self.imported(path, source, parent)
            fields.update(self.fields(file, self.source(file), parent))
        for field, getter, of in re.findall(
            r'^\s+"([^"]+)": lambda n : setattr\(self, \'\w+\', n\.get_(\w+)\(([\w.]*)\)\),$', source, re.M
        ):
            fields[field] = {"type": self.value(path, source, getter, of), "required": False}
        # Whose class it is, where it could be several.
        fields.setdefault("@odata.type", {"type": kind("string"), "required": False})
        return fields

    def value(self, path, source, getter, of):
        of = of.split(".")[-1]
        match getter:
            case "object_value" | "enum_value":
                return self.model(path, source, of)
            case "collection_of_object_values" | "collection_of_enum_values":
                return kind("array", items=self.model(path, source, of))
            case "collection_of_primitive_values":
                return kind("array", items=kind(PRIMITIVE[of.lower()]))
            case _:
                return kind(PRIMITIVE[getter.removesuffix("_value")])

    def derived(self, name, child):
        """A field that takes a class takes those that are derived from it."""
        file = "msgraph/generated/models/" + re.sub(r"(?<!^)(?=[A-Z])", "_", child).lower() + ".py"
        self.types.pop(child, None)
        text = self.source(file)
        self.types[child] = None
        self.types[child] = kind("object", fields=self.fields(file, text, child))
        return kind("union", of=[kind("ref", name=name), kind("ref", name=child)])

    def operations(self, path):
        source = self.source(path)
        template = re.search(r'super\(\).__init__\(request_adapter, "([^"]+)"', source).group(1)
        address, _, query = template.removeprefix("{+baseurl}").partition("{?")
        address = "/v1.0" + address.replace("/users/{user%2Did}", "/me").replace("()", "").replace("%2D", "-")
        query = {
            name.rstrip("*").replace("%24", "$"): {"type": kind("string"), "required": False}
            for name in query.rstrip("}").split(",")
            if name
        }
        if address.endswith("/delta"):
            # The places that its own links name.
            for name in ["$skiptoken", "$deltatoken"]:
                query[name] = {"type": kind("string"), "required": False}
        for method, arguments in re.findall(r"async def (get|post|delete)\((.*?)\)", source):
            body = re.search(r"body: (\w+)", arguments)
            body = self.model(path, source, body.group(1)) if body else None
            if body == kind("ref", name="Attachment"):
                body = self.derived("Attachment", "FileAttachment")
            yield {
                "method": method.upper(),
                "path": address,
                "query": kind("object", fields=query),
                "body": body,
                "media": method == "post" and address in MIME,
            }


def graph(packages):
    with zipfile.ZipFile(wheel(packages, "msgraph_sdk")[-1]) as archive:
        description = Graph(archive)
        builders = GRAPH_BUILDERS + [
            name
            for name in archive.namelist()
            if name.endswith("_request_builder.py") and any(name.startswith(folder) for folder in GRAPH_FOLDERS)
        ]
        operations = [operation for path in builders for operation in description.operations(path)]
    return {"operations": operations, "types": description.types}


# Stripe: the parameters' TypedDicts of its own library, and its services' paths.

STRIPE_PATHS = re.compile(
    r"/v1/(customers|subscriptions|subscription_items|invoices|checkout/sessions|billing_portal/sessions"
    r"|prices|setup_intents|payment_methods)(/|$)"
)


def union(parts):
    """Any text beside known words stands for words to come, and is none of now."""
    if any(len(part.get("enum", [])) > 1 for part in parts):
        parts = [part for part in parts if part != kind("string")]
    return parts[0] if len(parts) == 1 else kind("union", of=parts)


class Stripe:
    def __init__(self, archive):
        self.archive = archive
        self.names = [name for name in archive.namelist() if name.endswith(".py")]
        self.types = {}
        self.modules = {}

    def module(self, path):
        if path not in self.modules:
            self.modules[path] = ast.parse(self.archive.read(path))
        return self.modules[path]

    def imports(self, tree):
        return {
            alias.name: node.module.replace(".", "/") + ".py"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    def reference(self, path, name):
        key = f"{path}:{name}"
        if key not in self.types:
            self.types[key] = kind("any")
            tree = self.module(path)
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and node.name == name:
                    self.types[key] = kind("object", fields=self.fields(path, node))
                elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
                    # A TypedDict with names that are no identifiers.
                    pairs = node.value.args[1]
                    fields = {
                        field.value: self.field(path, value) for field, value in zip(pairs.keys, pairs.values)
                    }
                    self.types[key] = kind("object", fields=fields)
        return kind("ref", name=key)

    def fields(self, path, node):
        fields = {}
        for base in node.bases:
            name = getattr(base, "id", "")
            if name not in ("TypedDict", "RequestOptions", ""):
                found = self.types[self.reference(path, name)["name"]]
                fields.update(found.get("fields", {}))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                fields[statement.target.id] = self.field(path, statement.annotation)
        return fields

    def field(self, path, annotation):
        if isinstance(annotation, ast.Constant):
            annotation = ast.parse(annotation.value, mode="eval").body
        required = True
        if isinstance(annotation, ast.Subscript) and annotation.value.id == "NotRequired":
            required = False
            annotation = annotation.slice
        return {"type": self.type(path, annotation), "required": required}

    def type(self, path, node):
        match node:
            case ast.Constant(value=str() as text):
                return self.type(path, ast.parse(text, mode="eval").body)
            case ast.Constant(value=None):
                return kind("string", enum=[""])
            case ast.BinOp(left=left, right=right):
                return union([self.type(path, left), self.type(path, right)])
            case ast.Name(id=name):
                known = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "Decimal": "number"}
                if name in known:
                    return kind(known[name])
                if name in ("Any", "UploadFile", "object"):
                    return kind("any")
                return self.reference(self.imports(self.module(path)).get(name, path), name)
            case ast.Subscript(value=ast.Name(id="List"), slice=inner):
                return kind("array", items=self.type(path, inner))
            case ast.Subscript(value=ast.Name(id="Dict"), slice=ast.Tuple(elts=[_, values])):
                return kind("map", values=self.type(path, values))
            case ast.Subscript(value=ast.Name(id="Optional" | "NotRequired"), slice=inner):
                return self.type(path, inner)
            case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=words)):
                return kind("string", enum=[word.value for word in words])
            case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Constant(value=word)):
                return kind("string", enum=[word])
            case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=parts)):
                return union([self.type(path, part) for part in parts])
            case _:
                return kind("any")

    def operations(self):
        services = [name for name in self.names if re.fullmatch(r"stripe/(\w+/)*_\w+_service\.py", name)]
        for path in services:
            tree = self.module(path)
            imports = self.imports(tree)
            for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
                call = next(
                    (
                        node
                        for node in ast.walk(function)
                        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "_request"
                    ),
                    None,
                )
                if call is None:
                    continue
                address = call.args[1]
                if isinstance(address, ast.Call):
                    address = address.func.value
                if not STRIPE_PATHS.match(address.value):
                    continue
                method = call.args[0].value.upper()
                parameters = kind("object", fields={})
                for argument in function.args.args:
                    if argument.arg == "params":
                        name = re.findall(r"\w+Params\b", ast.unparse(argument.annotation))[0]
                        parameters = self.reference(imports[name], name)
                yield {
                    "method": method,
                    "path": address.value,
                    "query": kind("object", fields={}) if method == "POST" else parameters,
                    "body": parameters if method == "POST" else None,
                    "media": False,
                }


def stripes(packages):
    for path in wheel(packages, "stripe"):
        with zipfile.ZipFile(path) as archive:
            description = Stripe(archive)
            version = re.search(r'CURRENT = "([^"]+)"', archive.read("stripe/_api_version.py").decode()).group(1)
            operations = list(description.operations())
        yield version, {"operations": operations, "types": description.types}


def main():
    packages, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    contracts = {"gmail": gmail(packages), "graph": graph(packages)}
    for version, contract in stripes(packages):
        contracts[f"stripe-{version}"] = contract
    for name, contract in contracts.items():
        if not contract["operations"]:
            sys.exit(f"contracts.py: nothing was found of {name}")
        (folder / f"{name}.json").write_text(json.dumps(contract))


if __name__ == "__main__":
    main()
