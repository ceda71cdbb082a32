#!/usr/bin/env python3
"""Rondo against other libraries: all-reduce of f32 in place, interleaved.

  benchmarks/peers/compare.py tcp|shm [--ranks 2,4,8] [--sizes 64K,1M,8M,64M] [--rounds 5] [--build build]

Every round runs every library once, one after another, so that a machine whose speed drifts treats all alike. A figure is the
median over rounds; the ratio is Rondo's median over the best peer's. Debian packages: libgloo-dev libopenmpi-dev
openmpi-bin (and rondo in the folder --build, from tools/build).
"""
import argparse, os, pathlib, shutil, statistics, subprocess, sys, tempfile

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
built = root / "build-peers"


def build():
    built.mkdir(exist_ok=True)
    for name, compiler, libraries in (("mpi", "mpicxx.openmpi", []), ("gloo", "g++", ["-lgloo", "-lpthread"])):
        program, source = built / name, here / f"{name}.cpp"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run([compiler, "-std=c++17", "-O3", "-w", "-o", program, source, *libraries], check=True)


def in_bytes(size):
    units = {"K": 10, "M": 20, "G": 30}
    return int(size[:-1]) << units[size[-1]] if size[-1] in units else int(size)


def in_us(time):
    return f"{time:.2f}" if time < 10 else f"{time:.0f}"


def in_words(size):
    return next(f"{size >> shift} {unit}" for unit, shift in (("MiB", 20), ("KiB", 10), ("B", 0)) if size >> shift)


def open_mpi(transport, extra=()):
    btl = {"tcp": "self,tcp", "shm": "self,vader"}[transport]
    return lambda ranks, sizes, scratch: [
        "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", ranks, "--mca", "oob_tcp_if_include", "lo",
        "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1", "--mca", "btl", btl, *extra, built / "mpi", sizes]


def gloo(rondo):
    return lambda ranks, sizes, scratch: [rondo, "run", "-n", ranks, "--", built / "gloo", sizes, scratch]


segmented = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5",
             "--mca", "coll_tuned_allreduce_algorithm_segmentsize", "262144"]
transports = ("tcp", "shm")


def peers_over(transport, rondo):
    peers = {"Open MPI": open_mpi(transport), "Open MPI, segmented ring": open_mpi(transport, segmented)}
    return peers | {"Gloo ring": gloo(rondo)} if transport == "tcp" else peers


def lines(command, limit=200):
    text = [str(word) for word in command]
    done = subprocess.run(text, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        sys.exit(f"{' '.join(text)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines()


def run_peer(make, ranks, sizes):
    scratch = tempfile.mkdtemp()
    try:
        output = lines(make(ranks, ",".join(map(str, sizes)), scratch))
    finally:
        shutil.rmtree(scratch)
    rows = [line.removeprefix("[0] ").split() for line in output]
    if any(row[2] != "right" for row in rows):
        sys.exit(f"wrong data: {rows}")
    return {int(row[0]): float(row[1]) for row in rows}


def run_rondo(rondo, transport, ranks, sizes):
    times = {}
    for size in sizes:
        for line in lines([rondo, "bench", "all_reduce", "-n", ranks, "-b", size, "-e", size, "--in-place", "only",
                           "--transport", transport]):
            if not line.startswith("#"):
                times[size] = float(line.split("|")[2].split()[0])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transport", choices=transports)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--sizes", default="64K,1M,8M,64M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default="build", help="the folder, from the root, whose rondo is measured")
    given = parser.parse_args()
    build()
    sizes = [in_bytes(size) for size in given.sizes.split(",")]
    rondo = root / given.build / "rondo"
    peers = peers_over(given.transport, rondo)
    print("| ranks | size | Rondo us | " + " | ".join(peers) + " | Rondo GB/s | ratio to the best |")
    print("|---" * (5 + len(peers)) + "|")
    for ranks in given.ranks.split(","):
        times = {name: {size: [] for size in sizes} for name in ["Rondo", *peers]}
        for _ in range(given.rounds):
            runs = {"Rondo": run_rondo(rondo, given.transport, ranks, sizes)}
            runs.update({name: run_peer(make, ranks, sizes) for name, make in peers.items()})
            for name, row in runs.items():
                for size, time in row.items():
                    times[name][size].append(time)
        for size in sizes:
            median = {name: statistics.median(row[size]) for name, row in times.items()}
            best = min(median[name] for name in peers)
            bus = size / median["Rondo"] * 1e-3 * 2 * (int(ranks) - 1) / int(ranks)
            print(f"| {ranks} | {in_words(size)} | {in_us(median['Rondo'])} | "
                  + " | ".join(in_us(median[name]) for name in peers)
                  + f" | {bus:.2f} | {median['Rondo'] / best:.2f} |", flush=True)


if __name__ == "__main__":
    main()
