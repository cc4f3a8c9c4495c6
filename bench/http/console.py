# SPDX-License-Identifier: Apache-2.0
"""The console's first paint in headless Chromium, and its bytes; measure.py calls it."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess

import peers
import servers

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
VISITS = 5
PAINT_MS, ALL_BYTES = 200, 100 << 10  # the targets
VISIT_S = 60


def find_browser():
    named = os.environ.get("PEG_CONSOLE_BROWSER")
    return next(filter(None, map(shutil.which, [named] if named else BROWSERS)), None)


def measure(options, program, folder, left_out):
    """Medians of the visits, cold and warm; none, with a reason, without a browser."""
    browser = find_browser()
    place, reason = peers.install_npm(options.build) if browser else (None, "there is no Chromium (apt-get install chromium-headless-shell)")
    if not place:
        left_out.append("the console: " + reason)
        return []
    with servers.Stack(pathlib.Path(folder)) as stack:
        (ours, *_) = peers.start_ours(stack, program)
        command = ["node", str(peers.SOURCE / "console.mjs"), f"http://{ours.address}/", "bench", browser, str(VISITS)]
        made = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=VISITS * 2 * VISIT_S)
    if made.returncode:
        raise RuntimeError("the console was not shown: " + made.stderr.strip()[-600:])
    visits = [json.loads(line) for line in made.stdout.splitlines()]
    return [median_row(kind, [visit for visit in visits if visit["kind"] == kind]) for kind in ("cold", "warm")]


def median_row(kind, visits):
    row = {key: statistics.median(visit[key] for visit in visits) for key in visits[0] if key != "kind"}
    return {"kind": kind, "visits": len(visits), "most_paint_ms": max(visit["paint_ms"] for visit in visits)} | row


def missed(row):
    """Which targets it does not reach, in words."""
    return [text for text, is_missed in ((f"first paint within {PAINT_MS} ms", row["paint_ms"] > PAINT_MS),
                                         (f"under {ALL_BYTES >> 10} KB", row["files"] >= ALL_BYTES)) if is_missed]


def table(rows):
    lines = ["## The console in a browser", "",
             "| cache | first paint ms | slowest of them | first content ms | list of toolsets ms | files | bytes of files | bytes of the API | missed |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['kind']} | {row['paint_ms']:.0f} | {row['most_paint_ms']:.0f} | {row['content_ms']:.0f} | {row['list_ms']:.0f} "
                     f"| {row['n_files']:.0f} | {row['files']:,.0f} | {row['api']:,.0f} | {', '.join(missed(row))} |")
    return lines
