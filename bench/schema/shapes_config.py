# SPDX-License-Identifier: Apache-2.0
"""Configuration documents: larger, nested, many optional members."""


def ci_workflow(d):
    def env():
        return {d.word().upper(): d.choice([d.word(), d.randint(1, 9), True]) for _ in range(d.randint(1, 4))}

    def step():
        made = {"name": d.text(2, 5)}
        if d.chance(0.5):
            made["uses"] = f"actions/{d.word()}@v{d.randint(1, 4)}"
            if d.chance(0.6):
                made["with"] = env()
        else:
            made["run"] = "\n".join(d.list(1, 4, lambda: d.words(2, 6)))
            if d.chance(0.3):
                made["shell"] = "bash"
        return {**made, **d.some({
            "id": d.word, "if": lambda: "success()", "env": env,
            "continue-on-error": lambda: d.choice([True, "${{ matrix.experimental }}"]),
            "timeout-minutes": lambda: d.randint(1, 60),
        }, 0.25)}

    def job():
        if d.chance(0.15):
            return {"uses": f"org/{d.word()}/.github/workflows/{d.word()}.yml@main", "with": env(), "secrets": "inherit"}
        made = {"runs-on": d.choice(["ubuntu-latest", ["self-hosted", "linux"], {"group": "big", "labels": ["x"]}]),
                "steps": d.list(3, 12, step)}
        matrix = lambda: {"matrix": {"os": d.list(1, 3, d.word), "version": d.list(1, 4, lambda: d.randint(8, 22)),
                                     "include": [{"os": d.word(), "extra": {"deep": [1, 2, d.word()]}}]},
                          "fail-fast": d.chance(0.5)}
        container = lambda: {"image": d.word() + ":latest", "ports": [80, "443"], "volumes": ["a:/b"], "env": env()}
        return {**made, **d.some({
            "name": lambda: d.text(1, 4), "needs": lambda: d.list(1, 3, d.word), "env": env, "strategy": matrix,
            "permissions": lambda: {"contents": "read", "packages": "write"}, "if": lambda: "always()",
            "timeout-minutes": lambda: d.randint(1, 360), "container": container,
            "services": lambda: {d.word(): container()}, "outputs": lambda: {d.word(): "${{ steps.x.outputs.y }}"},
            "concurrency": lambda: {"group": d.word(), "cancel-in-progress": True},
        }, 0.35)}

    dispatch = {"inputs": {d.word(): {"description": d.text(2, 6), "required": True, "type": "choice", "options": ["a", "b"]}}}
    on = d.choice(["push", ["push", "pull_request"], {
        "push": {"branches": ["main", "release/**"], "paths": ["src/**"]}, "pull_request": {"types": ["opened"]},
        "schedule": [{"cron": "0 4 * * 1"}], "workflow_dispatch": dispatch}])
    return {"name": d.text(1, 3), "on": on, "jobs": {d.word(): job() for _ in range(d.randint(2, 8))}, **d.some({
        "env": env, "permissions": lambda: "read-all", "concurrency": lambda: d.word(),
        "defaults": lambda: {"run": {"shell": "bash", "working-directory": d.word()}},
    }, 0.5)}


def compose(d):
    def pairs():
        if d.chance(0.5):
            return {d.word().upper(): d.choice([d.word(), d.randint(1, 9999), None, True]) for _ in range(d.randint(1, 8))}
        return sorted({f"{d.word().upper()}={d.word()}" for _ in range(d.randint(1, 8))})

    def service():
        port = lambda i: d.choice([f"{8000 + i}:80", 3000 + i, {"target": 80, "published": 9000 + i, "protocol": "tcp"}])
        volume = lambda i: d.choice([f"./{d.word()}{i}:/srv/{i}", {"type": "bind", "source": f"./{i}", "target": f"/t{i}"}])
        names = lambda: sorted({d.word() for _ in range(d.randint(1, 3))})
        made = {"image": f"{d.word()}/{d.word()}:{d.randint(1, 20)}"} if d.chance(0.7) else {
            "build": d.choice([".", {"context": ".", "dockerfile": "Dockerfile", "args": pairs(), "target": d.word()}])}
        return {**made, **d.some({
            "command": lambda: d.choice([d.words(2, 5), d.list(2, 5, d.word)]), "container_name": d.ident,
            "depends_on": lambda: d.choice([names(), {d.word(): {"condition": "service_healthy"}}]),
            "deploy": lambda: {"replicas": d.randint(1, 5), "resources": {"limits": {"cpus": "0.5", "memory": "512M"}},
                               "restart_policy": {"condition": "on-failure", "max_attempts": 3}},
            "environment": pairs, "env_file": lambda: ".env", "expose": lambda: ["3000", 8000],
            "healthcheck": lambda: {"test": ["CMD", "curl", "-f", d.url()], "interval": "30s", "retries": 3, "timeout": "5s"},
            "labels": pairs, "logging": lambda: {"driver": "json-file", "options": {"max-size": "10m", "max-file": 3}},
            "networks": lambda: d.choice([names(), {d.word(): {"aliases": names()}, d.word(): None}]),
            "ports": lambda: [port(i) for i in range(d.randint(1, 4))], "restart": lambda: "unless-stopped",
            "volumes": lambda: [volume(i) for i in range(d.randint(1, 4))], "user": d.word,
            "working_dir": lambda: "/srv", "x-note": lambda: d.text(1, 5),
        }, 0.5)}

    return {"name": d.word(), "services": {d.ident(): service() for _ in range(d.randint(2, 10))}, **d.some({
        "version": lambda: "3.9",
        "networks": lambda: {d.word(): {"driver": "bridge", "labels": pairs()}, d.word(): None},
        "volumes": lambda: {d.word(): None, d.word(): {"driver": "local", "driver_opts": {"type": "nfs", "n": 4}}},
        "secrets": lambda: {d.word(): {"file": "./secret.txt"}},
    }, 0.6)}


def manifest(d):
    def dependencies(low, high):
        return {d.choice(["", "@scope/"]) + d.word() + "-" + d.word(): f"^{d.randint(0, 20)}.{d.randint(0, 20)}.{d.randint(0, 20)}"
                for _ in range(d.randint(low, high))}

    def person():
        return {"name": d.name(), "email": d.email()} if d.chance(0.6) else f"{d.name()} <{d.email()}>"

    exports = lambda: d.choice(["./index.js", {".": {"import": "./index.mjs", "require": "./index.cjs", "types": "./index.d.ts"},
                                               "./package.json": "./package.json"}])
    return {"name": d.choice(["", "@org/"]) + d.word() + "-" + d.word(), "version": f"{d.randint(0, 9)}.{d.randint(0, 99)}.0",
            "description": d.text(4, 16), "license": d.choice(["MIT", "Apache-2.0", "CC0-1.0"]),
            "scripts": {d.word(): d.words(2, 8) for _ in range(d.randint(2, 12))},
            "dependencies": dependencies(2, 25), "devDependencies": dependencies(5, 40), **d.some({
                "keywords": lambda: d.list(1, 10, d.word), "homepage": d.url, "bugs": lambda: {"url": d.url()},
                "author": person, "contributors": lambda: d.list(1, 6, person), "files": lambda: d.list(1, 5, d.word),
                "main": lambda: "index.js", "type": lambda: d.choice(["module", "commonjs"]), "exports": exports,
                "bin": lambda: {d.word(): "./bin/cli.js"}, "repository": lambda: {"type": "git", "url": d.url()},
                "peerDependencies": lambda: dependencies(1, 4), "engines": lambda: {"node": ">=18"},
                "private": lambda: d.chance(0.5), "workspaces": lambda: ["packages/*"],
                "publishConfig": lambda: {"access": "public"}, "config": lambda: {"port": 8080}, "_resolved": d.url,
            }, 0.6)}


def geojson(d):
    def position():
        return [d.decimal(-180, 180, 6), d.decimal(-90, 90, 6)]

    def ring():
        points = d.list(4, 40, position)
        return points + [points[0]]

    def geometry():
        return d.choice([
            lambda: {"type": "Point", "coordinates": position()},
            lambda: {"type": "LineString", "coordinates": d.list(2, 40, position)},
            lambda: {"type": "Polygon", "coordinates": d.list(1, 2, ring)},
            lambda: {"type": "MultiPolygon", "coordinates": [d.list(1, 2, ring) for _ in range(2)]},
        ])()

    def feature():
        return {"type": "Feature", "id": d.randint(1, 10**6), "geometry": geometry(),
                "properties": {"name": d.name(), "height": d.decimal(0, 4000, 1), "tags": d.list(0, 3, d.word)}}

    return {"type": "FeatureCollection", "features": d.list(2, 12, feature)}


def openapi(d):
    def schema(depth):
        if depth == 0 or d.chance(0.4):
            return d.choice([{"type": "string", "description": d.text(2, 6)}, {"type": ["integer", "null"], "minimum": 0},
                             {"$ref": "#/components/schemas/" + d.word().capitalize()}, {"enum": ["a", "b", "c"]}])
        if d.chance(0.3):
            return {"type": "array", "items": schema(depth - 1)}
        names = sorted({d.word() for _ in range(d.randint(2, 6))})
        return {"type": "object", "properties": {n: schema(depth - 1) for n in names}, "required": names[:1]}

    def parameter():
        if d.chance(0.2):
            return {"$ref": "#/components/parameters/" + d.word()}
        where = d.choice(["query", "path", "header"])
        made = {"name": d.word(), "in": where, "description": d.text(2, 8), "schema": schema(0)}
        return {**made, **({"required": True} if where == "path" else {})}

    def content():
        return {"application/json": {"schema": schema(3)}}

    def response():
        return {"description": d.text(2, 6), **({"content": content()} if d.chance(0.7) else {})}

    def operation():
        made = {"operationId": d.ident(), "tags": [d.word()], "summary": d.text(2, 6), "parameters": d.list(0, 4, parameter),
                "responses": {"200": response(), "404": {"$ref": "#/components/responses/NotFound"}, "default": response()}}
        return {**made, **d.some({"requestBody": lambda: {"content": content(), "required": True},
                                  "deprecated": lambda: True, "x-internal": lambda: True}, 0.4)}

    def path():
        return {m: operation() for m in d.sample(["get", "put", "post", "delete", "patch"], d.randint(1, 4))}

    return {"openapi": "3.1.0", "info": {"title": d.text(2, 4), "version": "1.0.0", "license": {"name": "MIT"}},
            "servers": [{"url": "https://api.example.com"}],
            "paths": {f"/{d.word()}/{{id}}/{d.ident()}": path() for _ in range(d.randint(2, 8))},
            "components": {"schemas": {d.word().capitalize(): schema(3) for _ in range(4)},
                           "responses": {"NotFound": response()}},
            "tags": [{"name": d.word(), "description": d.text(2, 6)}], "security": [{"token": []}]}


def tree(d):
    def operand(depth):
        if depth > 0 and d.chance(0.3):
            return {"call": d.choice(["lower", "concat", "round"]), "args": [operand(depth - 1) for _ in range(d.randint(1, 3))]}
        return d.choice([{"field": d.word()}, d.word(), d.randint(0, 1000), d.decimal(0, 9, 2), None])

    def expression(depth):
        if depth == 0 or d.chance(0.25):
            right = [operand(0) for _ in range(4)] if d.chance(0.2) else operand(2)
            return {"op": d.choice(["eq", "lt", "ge", "like", "in"]), "left": operand(1), "right": right}
        if d.chance(0.2):
            return {"op": "not", "term": expression(depth - 1)}
        return {"op": d.choice(["and", "or"]), "terms": [expression(depth - 1) for _ in range(d.randint(2, 4))]}

    return expression(5)


def unique(d):
    n = d.randint(50, 300)
    return {"names": [f"{d.word()}-{i}" for i in d.sample(range(100000), n)],
            "numbers": d.sample(range(10**6), n // 2) + [i + 0.5 for i in d.sample(range(1000), n // 4)],
            "records": [{"id": i, "key": d.word(), "at": [i % 7, d.decimal(0, 1, 3)]} for i in d.sample(range(10**5), n // 4)]}
