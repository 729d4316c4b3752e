"""What builds the batches in a DataLoader worker."""


def fetchers() -> list[type]:
    """The classes whose fetch() builds a batch."""
    from torch.utils.data._utils import fetch

    base: type = fetch._BaseDatasetFetcher
    return [base, *base.__subclasses__()]
