"""The budget of looks and traces says what it put off."""

from leakprobe.analysis.suspects import Budget


def test_nothing_is_put_off_while_it_can_be_afforded():
    budget = Budget(allowance_s=1e9, share=0.0, stretch=0.2)
    assert budget.due(5, measured=5)
    budget.spend(3.0)
    assert budget.due(50, measured=50) and budget.put_off() is None


def test_what_was_too_dear_is_told_with_its_price_and_first_step():
    budget = Budget(allowance_s=4.0, share=0.0, stretch=0.2)
    assert budget.due(5, measured=5)
    budget.spend(3.0)
    assert not budget.due(50, measured=50) and not budget.due(60, measured=60)
    assert "since step 50" in budget.put_off() and "3 s" in budget.put_off() and "4 s" in budget.put_off()


def test_what_was_done_later_is_told_no_more():
    budget = Budget(allowance_s=4.0, share=0.0, stretch=0.2)
    budget.spend(3.0)
    assert not budget.due(50, measured=50)
    assert budget.due(60, measured=60, at_once=True) is False  # 6 s are more than 4 and 1 at the end of a loop
    budget.spend(0.5)
    assert budget.due(70, measured=70) and budget.put_off() is None
