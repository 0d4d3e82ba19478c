"""What the scripts of this folder share: building a bench, running a process, writing a table into a page."""
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"
# glibc gives large blocks back to the system and faults them in again; both sides get the same settings.
KEEP_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
# The median of the seconds, the peak memory in MiB, the device, and the whole line of JSON.
Run = namedtuple("Run", "seconds memory device result")


def options_for_all(parser):
    parser.add_argument("--features", default="", help="features of the build on top of the default ones")
    parser.add_argument("--default-allocator", action="store_true", help="leave the allocator as it is")
    parser.add_argument("--under", default="", help="a command to run everything under, such as 'taskset -c 0,1'")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")


def built(bench, features=""):
    """The path of the bench, which other features build in a folder of their own."""
    command = ["cargo", "bench", "--bench", bench, "--no-run", "--message-format", "json"]
    if features:
        command += ["--features", features]
        if "CARGO_TARGET_DIR" not in os.environ:
            command += ["--target-dir", str(ROOT / "target" / features)]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    return next(m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == bench)


def run(command, options, threads):
    """One process and what it printed last; memory is the largest resident size."""
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    if not options.default_allocator:
        environment |= KEEP_PAGES
    command = [*options.under.split(), *map(str, command)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    result = json.loads(output.strip().splitlines()[-1])
    return Run(statistics.median(result["seconds"]), usage.ru_maxrss / 1024, result["device"], result)


def spread(values, digits):
    """The median, and the smallest and largest value."""
    values = list(values)
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def publish(marker, table, write):
    """Prints the table; if asked to, puts it between <!-- marker --> and <!-- /marker --> of the page."""
    print(table)
    if write:
        marked = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)", re.S)
        page, count = marked.subn(lambda m: f"{m[1]}{table}\n{m[2]}", PAGE.read_text())
        if count != 1:
            sys.exit(f"{PAGE} has {count} places for <!-- {marker} -->, not one")
        PAGE.write_text(page)
