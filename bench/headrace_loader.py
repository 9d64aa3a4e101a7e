"""Headrace on the same archives, through its public Python API and nothing else.

Same command line and JSON line as the others (peers/common.py). numpy is needed only for --check: a timed run takes the
tensors and holds each batch until the next has come, as a training step would.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import common

import headrace as hr


def main():
    p = common.arguments(__doc__)
    p.add_argument("--memory", default="512MiB")
    p.add_argument("--sequential", action="store_true")
    a = p.parse_args()
    hr.configure(workers=a.threads)

    def batches():
        samples = hr.open(a.archive).samples(along="time", x=hr.view("field"))
        yield from samples.batches(a.batch, shuffle=not a.sequential, seed=a.seed, memory=a.memory)

    common.measure(a, batches(), rows=lambda b: b["x"], array=lambda b: b["x"].numpy(), index=lambda b: b.index.numpy())


if __name__ == "__main__":
    main()
