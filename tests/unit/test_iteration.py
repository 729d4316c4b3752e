"""probe.steps(x) in place of x: its length, items, attributes and next(), and which steps are marked."""

import copy
import weakref

import pytest

import leakprobe
from leakprobe.watch.iteration import steps_over


class Marked:
    """What a loop asks of a probe, with the number of marks."""

    def __init__(self):
        self._steps = self.epochs = self.ends = 0
        self._marking = self

    def is_active(self):
        return True

    def epoch(self):
        self.epochs += 1

    def iterated(self, marked_inside):
        assert not marked_inside

    def _step_if_on(self):
        self._steps += 1

    def _look_at_an_epochs_end(self):
        self.ends += 1


@pytest.fixture
def probe():
    return Marked()


class Loader:
    """As a DataLoader of a stream: no length, but attributes."""

    epoch = 0

    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        raise TypeError("no length")


def test_a_copy_and_special_methods(probe):
    steps = copy.copy(steps_over(probe, [1, 2]))
    assert list(steps) == [1, 2] and probe._steps == 2
    with pytest.raises(AttributeError):
        steps.__array__


def test_true_unless_it_is_known_to_be_empty(probe):
    assert not steps_over(probe, []) and steps_over(probe, [0])
    assert steps_over(probe, (i for i in [])) and steps_over(probe, Loader())


def test_items_by_index_and_backwards(probe):
    steps = steps_over(probe, [1, 2, 3])
    assert steps[0] == 1 and steps[1:] == [2, 3] and probe._steps == 0
    assert list(reversed(steps)) == [3, 2, 1] and probe._steps == 3
    with pytest.raises(TypeError):
        reversed(steps_over(probe, Loader()))
    with pytest.raises(TypeError):
        steps_over(probe, Loader())[0]


def test_attributes_are_set_on_what_is_gone_through(probe):
    loader = Loader()
    steps = steps_over(probe, loader)
    steps.epoch = 5
    assert loader.epoch == 5 == steps.epoch


def test_next_marks_the_step_before(probe):
    with pytest.raises(TypeError):
        next(steps_over(probe, [1]))
    steps = steps_over(probe, iter([1, 2, 3, 4]))
    assert (next(steps), probe._steps) == (1, 0)
    assert (next(steps), probe._steps) == (2, 1)
    assert list(steps) == [3, 4] and (probe._steps, probe.epochs, probe.ends) == (4, 1, 1)
    assert next(steps, None) is None and probe._steps == 4


def test_an_iterator_that_begins_again_after_its_end(probe):
    class Again:
        def __init__(self):
            self.left = 2

        def __iter__(self):
            return self

        def __next__(self):
            self.left -= 1
            if self.left < 0:
                self.left = 2
                raise StopIteration
            return self.left

    steps = steps_over(probe, Again())
    assert [list(steps), list(steps), next(steps)] == [[1, 0], [1, 0], 1]
    assert (probe._steps, probe.epochs) == (4, 3)


def test_a_loop_keeps_no_item_and_is_no_cycle(probe):
    class Item:
        pass

    steps = steps_over(probe, (Item() for _ in range(3)))
    for item in steps:
        seen = weakref.ref(item)
        del item
        assert seen() is None
        break
    loop = weakref.ref(steps._loop)
    del steps
    assert loop() is None


def test_a_watch_counts_them():
    with leakprobe.watch(warmup=0) as probe:
        steps = probe.steps(iter(range(5)))
        assert next(steps) == 0
        for _ in steps:
            pass
    assert probe.report().steps["measured"] == 5
