"""Runs the tests registered in a build folder and counts real test cases.

A tier is an executable registered with Meson's test(). A doctest tier keeps a log of its cases (tests/cases.cpp), by
which they are counted; another executable counts as one case. A tier that crashes, hangs or reports nothing is one
more failure, named. The last line is "N passed, N failed", and ", N skipped" where there is any.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 300  # of a tier, unless its test(timeout: ) is longer
STEPS, RANKS, MAX_LOSS = 60, 4, 2.9  # of the training in --full
TRAINING_LIMIT_S = 300


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def line(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run(command, environment, limit_s, cwd=None):
    """Returns (what came of it or None when all is well, the output). Ends the whole process group."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       env={**os.environ, **environment}, cwd=cwd, start_new_session=True)
        except OSError as error:
            return f"not started: {error}", ""
        try:
            status = process.wait(limit_s)
            trouble = None
            if status > 0:
                trouble = f"exit status {status}"
            elif status < 0:
                trouble = f"killed by signal {-status} ({signal.Signals(-status).name})"
        except subprocess.TimeoutExpired:
            trouble = f"not done after {limit_s} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also what the tier left behind
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return trouble, output.read().decode(errors="replace")


def read_log(path):
    """Counts of a tier's log, the lines of what failed or was skipped, and the case that started and never ended."""
    counts, remarks, running = Counts(), [], None
    if os.path.exists(path):
        for line in open(path, errors="replace"):
            what, _, rest = line.rstrip("\n").partition(" ")
            running = rest if what == "start" else None
            counts.passed += what == "passed"
            counts.failed += what == "failed"
            counts.skipped += what == "skipped"
            if what in ("failed", "skipped"):
                remarks.append(f"{what}: {rest}")
    return counts, remarks, running


def run_tier(test, mode, wrapper):
    limit_s = max(LIMIT_S, test["timeout"])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rondo-test-check-") as folder:
        log = os.path.join(folder, "log")
        settings = {"TEST_LOG": log, "TEST_SKIP_SLOW": "0" if mode == "full" else "1"}
        trouble, output = run(wrapper + test["cmd"], {**test["env"], **settings}, limit_s, test["workdir"])
        counts, remarks, running = read_log(log)
        is_doctest = os.path.exists(log)
    if not is_doctest:
        counts.passed, counts.failed = (0, 1) if trouble else (1, 0)
    elif running is not None:
        counts.failed += 1
        trouble = f"{trouble or 'ended'} in: {running}"
    elif trouble and not counts.failed:  # for example a sanitizer's report at the end
        counts.failed = 1
    elif counts.passed + counts.failed + counts.skipped == 0:
        counts.failed, trouble = 1, "no test case ran"
    print(f"{test['name']}: {counts.line()} ({time.monotonic() - began:.1f} s)")
    for line in remarks:
        print(f"  {line}")
    if counts.failed:
        print(output)
        print(f"{test['name']}: {trouble or 'failed'}")
    sys.stdout.flush()
    return counts, output


def train(build):
    """A short training on four processes must have learnt something."""
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="rondo-test-train-") as folder:
        command = [f"{build}/rondo", "run", "-n", str(RANKS), "--", f"{build}/trainer", "--out", folder,
                   "--steps", str(STEPS)]
        trouble, output = run(command, {}, TRAINING_LIMIT_S)
        try:
            steps = [line for line in map(json.loads, open(f"{folder}/log.jsonl")) if not line.get("final")]
            loss = steps[-1]["loss"]
            if trouble is None and len(steps) != STEPS:
                trouble = f"{len(steps)} steps instead of {STEPS}"
            if trouble is None and not loss < MAX_LOSS:
                trouble = f"loss {loss} is not below {MAX_LOSS}"
        except (OSError, IndexError, KeyError, ValueError) as error:
            trouble = trouble or f"its log is not readable: {error!r}"
    if trouble is None:
        counts.passed = 1
        print(f"training: 1 passed, 0 failed (loss {loss:.3f} after {STEPS} steps on {RANKS} ranks)")
    else:
        counts.failed = 1
        print(f"{output}\ntraining: {trouble}")
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--quick", dest="mode", action="store_const", const="quick", default="default")
    parser.add_argument("--full", dest="mode", action="store_const", const="full")
    parser.add_argument("--only", action="append", help="a tier; may be repeated")
    parser.add_argument("--retry-without-aslr", action="store_true",
                        help="run again under setarch -R when ThreadSanitizer refuses the address space")
    options = parser.parse_args()

    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", options.build], check=True,
                                      stdout=subprocess.PIPE).stdout)
    total = Counts()
    for test in tests:
        if options.only and test["name"] not in options.only:
            continue
        if options.mode == "quick" and test["name"] == "process":
            continue
        if any(suite.split(":")[-1] == "slow" for suite in test["suite"]):
            continue  # the same cases are part of their tier with --full
        counts, output = run_tier(test, options.mode, [])
        if counts.failed and options.retry_without_aslr and "unexpected memory mapping" in output:
            counts, _ = run_tier(test, options.mode, ["setarch", "-R"])
        total.add(counts)
    if options.mode == "full" and not options.only:
        total.add(train(options.build))
    if total.passed + total.failed + total.skipped == 0:
        print("no tests found")
        total.failed = 1
    print(total.line())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
