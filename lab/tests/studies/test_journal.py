"""Which episodes have a row, and that no episode is counted twice or left out."""

import pandas

from lab.tests.studies.examples import small_plan
from omg_cmdp.runs.ledger import COLUMNS
from omg_lab.studies.journal import kept


def test_a_ledger_that_is_drained_counts_on():
    run, other = (small_plan().tasks()[0].start() for _ in range(2))
    run.advance(5)
    first = run.ledger.drain()
    run.advance(3)
    other.advance(8)
    assert (len(first), len(run.ledger), run.ledger.episodes) == (5, 3, 8)
    tables = pandas.concat([first.table(), run.ledger.table()])
    columns = list(COLUMNS[:-4])
    pandas.testing.assert_frame_equal(tables[columns], other.ledger.table()[columns], check_index_type=False)
    assert [*first.contexts, *run.ledger.contexts] == other.ledger.contexts


def test_the_rows_of_a_long_log_are_few():
    rows = sum(kept(episode, 1_000_000) for episode in range(1, 1_000_001))
    assert rows == 10_000 + 9_000 + 9_000
    assert kept(123_457, 123_457)
