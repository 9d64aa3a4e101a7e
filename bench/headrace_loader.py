"""Headrace on the same archives, through its public Python API and nothing else.

Same command line and JSON line as the others (peers/common.py). numpy is needed only for --check: a timed run takes the
tensors and holds each batch until the next has come, as a training step would. With --later one epoch goes by before
the clock starts: the memory of its batches has then been written to, as the floor's ring has.
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
    p.add_argument("--later", action="store_true")
    a = p.parse_args()
    hr.configure(workers=a.threads)

    def loader():
        samples = hr.open(a.archive).samples(along="time", x=hr.view("field"))
        return samples.batches(a.batch, shuffle=not a.sequential, seed=a.seed, memory=a.memory)

    def first_epoch():
        yield from loader()

    def later_epoch():
        again = loader()
        for _ in again:
            pass
        return iter(again)

    batches = later_epoch if a.later else first_epoch
    common.measure(a, batches(), rows=lambda b: b["x"], array=lambda b: b["x"].numpy(), index=lambda b: b.index.numpy())


if __name__ == "__main__":
    main()
