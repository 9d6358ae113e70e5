from _turns import alternate


def test_two_steps_take_turns_and_who_begins_changes():
    taken = []
    seconds = alternate(lambda: taken.append("a"), lambda: taken.append("b"), blocks=2, block=3)
    assert "".join(taken) == "aaabbb" + "bbbaaa" + "aaabbb"  # the first warms up
    assert len(seconds) == 2
    assert all(a > 0 and b > 0 for a, b in seconds)
