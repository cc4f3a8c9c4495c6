# SPDX-License-Identifier: Apache-2.0
"""Turns results into text and Markdown."""

import math

HEADS = ["case", "schema", "inst.", "bytes", "valid", "pegboard ns", "Blaze ns", "ratio", "AJV ns", "ratio", "Blaze in a row", "MB/s", "compile µs"]


def figure(results, name, key, form="{:.0f}"):
    value = results.get(name, {}).get(key)
    return "–" if value is None else form.format(value)


def ratio(results, name, key="ns"):
    """How many times longer than ours; None where either is missing."""
    ours, theirs = results.get("pegboard", {}).get("ns"), results.get(name, {}).get(key)
    return theirs / ours if ours and theirs else None


def ratio_text(value):
    return "–" if value is None else f"{value:.2f}×"


def cells(row):
    results = row["results"]
    valid = next((str(r["valid"]) for r in results.values() if "valid" in r), "–")
    return [row["case"], str(row["schema_bytes"]), str(row["instances"]), str(row["mean_bytes"]), valid,
            figure(results, "pegboard", "ns"), figure(results, "Blaze", "ns"), ratio_text(ratio(results, "Blaze")),
            figure(results, "AJV", "ns"), ratio_text(ratio(results, "AJV")),
            figure(results, "Blaze", "row_ns"), figure(results, "pegboard", "mb_per_s"),
            figure(results, "pegboard", "compile_us", "{:.1f}")]


def progress(row):
    figures = ", ".join(f"{name} {r['ns']:.0f} ns" if "ns" in r else f"{name}: {r['error']}"
                        for name, r in row["results"].items())
    return f"{row['case']}: {figures}" + "".join(f"\n  DISAGREE: {d}" for d in row["disagree"])


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows):
    lines = []
    for name, key, told in (("Blaze", "ns", "Blaze"), ("Blaze", "row_ns", "Blaze in a row"), ("AJV", "ns", "AJV")):
        ratios = {row["case"]: ratio(row["results"], name, key) for row in rows}
        ratios = {case: value for case, value in ratios.items() if value}
        if ratios:
            worst = min(ratios, key=ratios.get)
            lines.append(f"{told} takes {geometric_mean(ratios.values()):.2f} times as long as pegboard (geometric mean of "
                         f"{len(ratios)} cases); worst case {worst}: {ratios[worst]:.2f}.")
    small = [row["results"]["pegboard"]["compile_us"] for row in rows
             if 1000 <= row["schema_bytes"] <= 5120 and "compile_us" in row["results"].get("pegboard", {})]
    if small:
        lines.append(f"Schemas of 1 to 5 KB compile in {min(small):.0f} to {max(small):.0f} µs.")
    near_kb = {row["case"]: row["results"]["pegboard"]["mb_per_s"] for row in rows
               if 700 <= row["mean_bytes"] <= 1400 and "mb_per_s" in row["results"].get("pegboard", {})}
    if near_kb:
        told = ", ".join(f"{case} {value:.0f}" for case, value in near_kb.items())
        lines.append(f"Bytes to verdict on arguments of about 1 KB, MB/s: {told}.")
    lines += [f"DISAGREE in {row['case']}: {d}" for row in rows for d in row["disagree"]]
    return lines


def schema_text(rows):
    lines = [HEADS] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    text = ["  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))) for line in lines]
    return "\n".join(text + [""] + summary(rows))


def machine(m):
    return f"{m['cpu']}, {m['cores']} cores, {m['kernel']}, {m['compiler']}"


def warning(m):
    """Others at work while we measured: peers are timed by means, which suffer more than ours."""
    if m["load"] <= 0.5:
        return ""
    return (f"NOT IDLE: load average {m['load']:.1f} before the run. Slices of time that others took are in the figures, "
            "and not evenly: don't quote these ratios.")


def markdown_table(heads, lines):
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule] + lines) + "\n"


def json_markdown(rows):
    heads = ["parse and walk", "texts", "ns (best)", "ns (median)", "MB/s", "ratio to pegboard", "kept, bytes a byte of text"]
    return markdown_table(heads, [[r["parser"], r["size"], figure({"": r}, "", "best_ns"), figure({"": r}, "", "median_ns"),
                                   figure({"": r}, "", "mb_per_s"), f"{r['ratio']:.2f}",
                                   f"{r['kept']:.2f}" if r["kept"] else "–"] for r in rows])


def core_markdown(rows):
    return markdown_table(["in-process", "figure", "unit", "ratio to pegboard"],
                          [[r["name"].strip(), f"{r['value']:.2f}" if r["value"] < 100 else f"{r['value']:.0f}", r["unit"],
                            f"{r['ratio']:.0f}×" if "ratio" in r else ""] for r in rows])


def markdown(results):
    parts = [machine(results["machine"]) + (" — quick run, rough figures" if results["quick"] else "") + "\n"]
    if warning(results["machine"]):
        parts.append(warning(results["machine"]) + "\n")
    if "core" in results:
        parts.append(core_markdown(results["core"]))
    if "turn" in results:
        parts.append(core_markdown(results["turn"]))
    if "json" in results:
        parts.append(json_markdown(results["json"]))
    if "schema" in results:
        parts.append(markdown_table(HEADS, [cells(row) for row in results["schema"]]))
        parts.append("\n".join("- " + line for line in summary(results["schema"])) + "\n")
    return "\n".join(parts)
