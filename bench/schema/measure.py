# SPDX-License-Identifier: Apache-2.0
"""Runs the validators on one case, in turn, several times."""

import dataclasses
import json
import re
import subprocess


@dataclasses.dataclass
class Plan:
    seconds: float  # of measuring, about, for each validator in each round
    rounds: int


class Failed(Exception):
    """A validator that could not be run on a case; the message says why."""


def run(command, fine=(0,)):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in fine:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"{command[0].rsplit('/', 1)[-1]} ended with {done.returncode}: {' '.join(said[:3])}")
    return done.stdout


def loops_for(ns_per_instance, case, plan):
    """How often to go over the instances so that it takes plan.seconds in all."""
    return max(20, round(plan.seconds * 1e9 / (ns_per_instance * case["instances"])))


class Pegboard:
    """The `pegboard` command, as a user would run it."""

    name = "pegboard"

    def __init__(self, command):
        self.command = command

    def measure(self, case, folder, plan):
        command = [self.command, "validate", "--benchmark"]
        if case["assert_format"]:
            command.append("--assert-format")
        files = [str(folder / f"{case['name']}.json"), str(folder / f"{case['name']}.jsonl")]
        loops = loops_for(case.setdefault("guess_ns", 1000), case, plan)
        out = run(command + ["--loop", str(loops)] + files, fine=(0, 1))
        figures = json.loads(out.strip().splitlines()[-1])
        case["guess_ns"] = figures["ns_per_instance"]
        return {"ns": figures["ns_per_instance"], "valid": figures["valid"],
                "mb_per_s": figures["parse_and_validate_mb_per_s"], "compile_us": figures["compile_us"]}


class Blaze:
    """`jsonschema validate --fast --benchmark`: each call between two readings of the clock, whose own
    cost it measures and takes away. It can repeat an instance only in a row (`row_ns`). To have them
    in sequence it is given the instances many times over, each to be validated once; these copies
    are kept few, because they take room in the caches that ours and AJV's do not need."""

    name = "Blaze"
    COPIES_BYTES = 2 << 20
    LINE = re.compile(r"\[(\d+)\]: (PASS|FAIL) ([\d.]+) \+- [\d.]+ us")

    def __init__(self, peers):
        self.command = str(peers / "node_modules" / ".bin" / "jsonschema")

    def once(self, case, folder, instances, loops):
        """Verdict and nanoseconds of each line of a file."""
        command = [self.command, "validate", "--fast", "--benchmark", "--continue", "--loop", str(loops)]
        if case["assert_format"]:
            command.append("--format-assertion")
        lines = self.LINE.findall(run(command + [str(folder / f"{case['name']}.json"), str(instances)], fine=(0, 2)))
        lines.sort(key=lambda line: int(line[0]))  # it takes the lines in an order of its own
        return [(verdict == "PASS", float(us) * 1000) for _, verdict, us in lines]

    def measure(self, case, folder, plan):
        n = case["instances"]
        passes = max(5, min(50, self.COPIES_BYTES // case["instance_bytes"]))
        instances = folder / f"{case['name']}.jsonl"
        copies = folder / f"{case['name']}.copies.jsonl"
        copies.write_bytes(instances.read_bytes() * passes)
        lines = self.once(case, folder, copies, 1)
        if len(lines) != n * passes:
            raise Failed(f"Blaze reported {len(lines)} of {n * passes} instances")
        ns = min(sum(took for _, took in lines[i:i + n]) / n for i in range(0, len(lines), n))
        row = self.once(case, folder, instances, loops_for(ns, case, plan))
        verdicts = "".join("1" if fits else "0" for fits, _ in row)
        return {"ns": ns, "row_ns": sum(took for _, took in row) / n, "valid": verdicts.count("1"), "verdicts": verdicts}


class Ajv:
    """AJV under node, objects parsed beforehand, code generated and warm: see ajv.mjs."""

    name = "AJV"

    def __init__(self, peers, source):
        self.command = ["node", str(source / "ajv.mjs"), str(peers)]

    def measure(self, case, folder, plan):
        files = [str(folder / f"{case['name']}.json"), str(folder / f"{case['name']}.jsonl")]
        formats = "true" if case["assert_format"] else "false"
        figures = json.loads(run(self.command + files + [str(plan.seconds), formats]))
        return {"ns": figures["ns"], "valid": figures["verdicts"].count("1"),
                "verdicts": figures["verdicts"], "compile_us": figures["compile_us"]}


def contestants(command, peers, source):
    return [Pegboard(command)] + ([Blaze(peers), Ajv(peers, source)] if peers else [])


def best(rounds):
    """The fastest of all rounds, as whatever else the machine did can only have made one slower."""
    made = dict(rounds[0])
    for name, choose in (("ns", min), ("row_ns", min), ("mb_per_s", max), ("compile_us", min)):
        if name in made:
            made[name] = choose(r[name] for r in rounds)
    return made


def disagreements(results):
    """Sentences, one for each pair of validators that do not say the same."""
    found = []
    names = [name for name in results if "ns" in results[name]]
    for a, b in zip(names, names[1:]):
        x, y = results[a], results[b]
        if "verdicts" in x and "verdicts" in y and x["verdicts"] != y["verdicts"]:
            lines = [i + 1 for i, (v, w) in enumerate(zip(x["verdicts"], y["verdicts"])) if v != w]
            found.append(f"{a} and {b} differ on lines {lines[:5]}")
        elif x["valid"] != y["valid"]:
            found.append(f"{a} accepts {x['valid']}, {b} {y['valid']}")
    return found


def run_case(case, folder, contestants, plan):
    rounds = {contestant.name: [] for contestant in contestants}
    failures = {}
    for _ in range(plan.rounds):
        for contestant in contestants:
            if contestant.name in failures:
                continue
            try:
                rounds[contestant.name].append(contestant.measure(case, folder, plan))
            except Failed as why:
                failures[contestant.name] = {"error": str(why)}
    results = {name: failures.get(name) or best(made) for name, made in rounds.items()}
    return {"case": case["name"], "schema_bytes": case["schema_bytes"], "instances": case["instances"],
            "mean_bytes": case["instance_bytes"] // case["instances"], "assert_format": case["assert_format"],
            "results": results, "disagree": disagreements(results)}
