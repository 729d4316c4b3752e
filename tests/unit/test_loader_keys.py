"""Which loaders of DataLoader workers count as one."""

import pytest

from leakprobe.torch.loader_keys import LoaderKeys


class Dataset:
    pass


class Other:
    pass


class Loader:
    def __init__(self, dataset):
        self.dataset = dataset


class Slotted:
    """Nothing refers to it weakly."""

    __slots__ = ("dataset",)

    def __init__(self, dataset):
        self.dataset = dataset


def test_a_loader_keeps_its_number():
    keys, loader = LoaderKeys(), Loader(Dataset())
    assert keys.of(loader) == keys.of(loader)


def test_loaders_that_are_alive_at_once_are_two():
    keys, dataset = LoaderKeys(), Dataset()
    first, second = Loader(dataset), Loader(dataset)
    assert keys.of(first) != keys.of(second) == keys.of(second)


@pytest.mark.parametrize("make", [Loader, Slotted])
def test_a_loader_made_anew_takes_the_place_of_one_that_is_gone(make):
    keys, dataset = LoaderKeys(), Dataset()
    numbers = [keys.of(make(dataset)) for _ in range(3)]  # in an assertion pytest would keep the loaders
    assert len(set(numbers)) == 1


def test_so_does_one_whose_dataset_was_made_anew():
    keys = LoaderKeys()
    numbers = [keys.of(Loader(Dataset())) for _ in range(3)]
    assert len(set(numbers)) == 1


def test_loaders_of_two_datasets_are_two_though_one_is_gone():
    keys, training, evaluation = LoaderKeys(), Dataset(), Dataset()
    numbers = [(keys.of(Loader(training)), keys.of(Loader(evaluation))) for _ in range(3)]
    assert len(set(numbers)) == 1 and len(set(numbers[0])) == 2


def test_a_dataset_of_another_type_is_another():
    keys = LoaderKeys()
    assert keys.of(Loader(Dataset())) != keys.of(Loader(Other()))


def test_few_are_remembered():
    keys = LoaderKeys()
    loaders = [Loader(Dataset()) for _ in range(200)]
    assert len({keys.of(loader) for loader in loaders}) == 200
    assert keys.of(loaders[-1]) == 199 and len(keys._past) < 100
