"""bionemo-scdl's data set under torch's DataLoader with its own collate function: every cell at random.

--workers 0 is the process itself; torch then has one thread, which is faster than two for tensors this small."""

import torch
from bionemo.scdl.io.single_cell_memmap_dataset import SingleCellMemMapDataset
from bionemo.scdl.util.torch_dataloader_utils import collate_sparse_matrix_batch
from measure import arguments, measure
from torch.utils.data import DataLoader, RandomSampler


class Told(RandomSampler):
    """Remembers the order, for --check."""

    def __iter__(self):
        self.order = list(super().__iter__())
        return iter(self.order)


def batches(a, sampler_of):
    data = SingleCellMemMapDataset(a.atlas)
    generator = torch.Generator()
    generator.manual_seed(a.seed)
    sampler = sampler_of["it"] = Told(data, generator=generator)
    loader = DataLoader(
        data, batch_size=a.batch, sampler=sampler, num_workers=a.workers, collate_fn=collate_sparse_matrix_batch
    )
    yield from loader


def main():
    p = arguments(__doc__)
    p.add_argument("--workers", type=int, default=0)
    a = p.parse_args()
    torch.set_num_threads(1)
    sampler_of, given = {}, [0]

    def rows(b):
        n, at = b.shape[0], given[0]
        given[0] += n
        return b.values(), b.crow_indices(), sampler_of["it"].order[at : at + n]

    measure(a, batches(a, sampler_of), lambda b: b.shape[0], rows)


if __name__ == "__main__":
    main()
