import pytest

history = []


def train_step(batch):
    history.append([x * 2 for x in batch])  # the leak


def test_step(no_growth):
    no_growth(train_step, range(1000), steps="3:10")


@pytest.mark.limit_growth("1 KiB/step")
def test_sorting():  # the body is the step
    sorted(range(1000), reverse=True)
