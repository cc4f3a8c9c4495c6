# SPDX-License-Identifier: Apache-2.0
"""MCP clients that take tasks. Whatever they are answered is judged by the protocol's schema, and by that of the tasks
extension, whose pages have it in TypeScript."""

import http.client
import json
import os
import subprocess
import tempfile

from asking import META, MODERN
from world import PEGBOARD, WAIT_S, await_true

TASKS = "io.modelcontextprotocol/tasks"
TAKES_TASKS = {"extensions": {TASKS: {}}}
CAN_ALL = {**TAKES_TASKS, "elicitation": {"form": {}}}

TIME = {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$"}
TASK = {
    "type": "object", "required": ["resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
    "properties": {"taskId": {"type": "string", "minLength": 1}, "createdAt": TIME, "lastUpdatedAt": TIME,
                   "statusMessage": {"type": "string"}, "ttlMs": {"type": ["integer", "null"], "minimum": 0},
                   "pollIntervalMs": {"type": "integer", "minimum": 1}}}


def variant(status, member=None, schema=None):
    others = [name for name in ("result", "error", "inputRequests") if name != member]
    return {"properties": {"status": {"const": status}, **({member: schema} if member else {})},
            "required": ["status"] + ([member] if member else []),
            "not": {"anyOf": [{"required": [name]} for name in others]}}


def protocol(name):
    return {"$ref": f"mcp:{MODERN}#/$defs/{name}"}


SCHEMAS = {
    "tools/call": {"anyOf": [
        {**protocol("CallToolResult"), "properties": {"resultType": {"const": "complete"}}},
        {**protocol("InputRequiredResult"), "properties": {"resultType": {"const": "input_required"}}},
        {"allOf": [TASK, variant("working"), {"properties": {"resultType": {"const": "task"}}}]}]},
    "tasks/get": {"allOf": [TASK, {"properties": {"resultType": {"const": "complete"}}}, {"oneOf": [
        variant("working"), variant("cancelled"), variant("input_required", "inputRequests", protocol("InputRequests")),
        variant("completed", "result", protocol("CallToolResult")),
        variant("failed", "error", {"type": "object", "required": ["code", "message"]})]}]},
    "tasks/update": {"allOf": [protocol("EmptyResult"), {"properties": {"resultType": {"const": "complete"}}}]},
    "tasks/cancel": {"allOf": [protocol("EmptyResult"), {"properties": {"resultType": {"const": "complete"}}}]},
    "error": protocol("JSONRPCErrorResponse"), "message": protocol("JSONRPCMessage"),
    "discover": protocol("DiscoverResult"),
}
SEEN = {}


def judge():
    """What was answered since the last time."""
    place = os.environ.get("PEG_MCP_DATA") or os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4,
                                                           "shared", "data", "mcp")
    for kind, values in SEEN.items() if os.path.isdir(place) else ():
        with tempfile.TemporaryDirectory() as folder:
            schema, said = os.path.join(folder, "schema.json"), os.path.join(folder, "said.jsonl")
            with open(schema, "w", encoding="utf-8") as file:
                json.dump(SCHEMAS[kind], file)
            with open(said, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(value) + "\n" for value in values)
            judged = subprocess.run([PEGBOARD, "validate", "--ref", f"mcp:{MODERN}={place}/{MODERN}/schema.json", schema,
                                     said], capture_output=True, text=True, check=False)
            assert judged.returncode == 0, (kind, judged.stdout, judged.stderr, values)
    SEEN.clear()


def see(method, message):
    SEEN.setdefault("message", []).append(message)
    if "error" in message:
        SEEN.setdefault("error", []).append(message)
    else:
        SEEN.setdefault("discover" if method == "server/discover" else method, []).append(message["result"])


def begin(gateway, method, params, capabilities=None, token=None, meta=None, **headers):
    """Sends a request of a modern client: its connection."""
    host, port = gateway.address.rsplit(":", 1)
    name = params.get("name") or params.get("taskId")
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {
        META + "protocolVersion": MODERN, META + "clientCapabilities": CAN_ALL if capabilities is None else capabilities,
        META + "clientInfo": {"name": "test", "version": "1"}, **(meta or {})}}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **({"Mcp-Name": name} if name else {}),
               **({"Authorization": "Bearer " + token} if token else {}), **headers}
    connection = http.client.HTTPConnection(host, int(port), timeout=WAIT_S)
    connection.request("POST", "/mcp/sums", json.dumps(message),
                       {name: value for name, value in headers.items() if value is not None})
    return connection


def ask(gateway, method, params, *args, **more):
    """The status, and the message."""
    connection = begin(gateway, method, params, *args, **more)
    answer = connection.getresponse()
    message = json.loads(answer.read())
    connection.close()
    see(method, message)
    return answer.status, message


def result(said):
    status, message = said
    assert status == 200 and "result" in message, said
    return message["result"]


def call(gateway, *args, n=1, **more):
    """tools/call, which is answered when it is a task."""
    return result(ask(gateway, "tools/call", {"name": "add", "arguments": {"n": n}}, *args, **more))


def make_task(gateway, provider, *args, **more):
    """A call that its provider has, and its task."""
    task = call(gateway, *args, **more)
    assert task["resultType"] == "task" and task["status"] == "working", task
    running = provider.next_call()
    assert running.call_id == task["taskId"], (running.call_id, task)
    return running, task


def get(gateway, task, *args, **more):
    return result(ask(gateway, "tasks/get", {"taskId": task["taskId"]}, *args, **more))


def update(gateway, task, responses, *args, **more):
    return result(ask(gateway, "tasks/update", {"taskId": task["taskId"], "inputResponses": responses}, *args, **more))


def cancel(gateway, task, *args, **more):
    return result(ask(gateway, "tasks/cancel", {"taskId": task["taskId"]}, *args, **more))


def until(gateway, task, status, *args, **more):
    """The task, once it has that status."""
    def look():
        found = get(gateway, task, *args, **more)
        return found if found["status"] == status else None
    return await_true(look, f"the task is {status}")


def is_unknown(gateway, method, task_id, *args, **more):
    params = {"taskId": task_id, **({"inputResponses": {}} if method == "tasks/update" else {})}
    status, message = ask(gateway, method, params, *args, **more)
    return status == 400 and message["error"]["code"] == -32602 and "no such task" in message["error"]["message"]
