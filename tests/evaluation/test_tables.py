"""Tables that a terminal shows in columns, and Markdown as tables."""

from minitransformer.evaluation.tables import aligned


def test_a_column_of_single_digits_has_a_rule_that_markdown_knows():
    assert aligned([["", "A", "B"], ["layers", "1", "12"]]).splitlines() == [
        "|        |  A |  B |",
        "| ------ | -: | -: |",
        "| layers |  1 | 12 |",
    ]
