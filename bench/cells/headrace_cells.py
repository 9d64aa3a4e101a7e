"""Headrace on the same atlas: CSR, top or random genes of each cell, or ranked tokens."""

from measure import arguments, measure

import headrace as hr
from headrace._cells import CellsView
from headrace._samples import build

GENES = 20000
FORMS = {
    "csr": {"form": 0},
    "dense": {"form": 1},
    "top": {"form": 2, "length": 1024, "pick": 1},
    "random": {"form": 2, "length": 1024, "pick": 2},
    "ranked": {"form": 3, "length": 2048, "total": 1e4},
}


def main():
    p = arguments(__doc__)
    p.add_argument("--form", choices=FORMS, default="csr")
    p.add_argument("--memory", default="512MiB")
    p.add_argument("--row-chunk", type=int, default=0)
    p.add_argument("--later", action="store_true", help="one epoch before the clock starts")
    p.add_argument("--block", type=int)
    p.add_argument("--spread", type=int)
    p.add_argument("--stats", action="store_true")
    a = p.parse_args()
    hr.configure(workers=a.threads)
    kept = {}

    def loader():
        options = {"columns": GENES, "row_chunk": a.row_chunk, **FORMS[a.form]}
        view = CellsView([("X/indptr", "X/indices", "X/data", GENES, 0)], [None], options)
        samples = build(hr.open(a.atlas), "obs", {"X": view})
        more = {k: v for k, v in (("block", a.block), ("spread", a.spread)) if v}
        kept["it"] = samples.batches(a.batch, shuffle=True, seed=a.seed, memory=a.memory, **more)
        return kept["it"]

    def first_epoch():
        yield from loader()

    def later_epoch():
        again = loader()
        for _ in again:
            pass
        return iter(again)

    def rows(b):
        return b["X.data"].numpy(), b["X.indptr"].numpy(), b.index.numpy()

    def more():
        if not a.stats:
            return {}
        plan = kept["it"].plan()
        return {
            "stats": kept["it"].stats(),
            "plan": {k: plan[k] for k in plan if k in ("block", "spread", "cost", "memory")},
        }

    batches = later_epoch if a.later else first_epoch
    measure(a, batches(), len, rows, more)


if __name__ == "__main__":
    main()
