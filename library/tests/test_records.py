"""Tables as lists of contexts: wherever contexts are listed, a row of a table is one of them."""

import gymnasium
import numpy as np
import pandas
import pytest

import omg_cmdp as omg
from omg_cmdp.records import columns_of, context_rows

FRAME = pandas.DataFrame({"age": [70, 50, 60], "ward": ["a", "b", None], "dose": [0.5, np.nan, 1.5]})
RECORDS = [
    {"age": 70, "ward": "a", "dose": 0.5},
    {"age": 50, "ward": "b", "dose": None},
    {"age": 60, "ward": None, "dose": 1.5},
]
TABLES = {
    "frame": FRAME,
    "nullable": FRAME.convert_dtypes(),
    "categorical": FRAME.astype({"ward": "category"}),
    "sorted": FRAME.sort_index(ascending=False)[::-1],
    "structured": np.array([(70, "a"), (50, "b")], dtype=[("age", "i4"), ("ward", "U1")]),
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_records_of_plain_values(name):
    rows = list(context_rows("contexts", TABLES[name]))
    expected = [{"age": 70, "ward": "a"}, {"age": 50, "ward": "b"}] if name == "structured" else RECORDS
    assert rows == expected
    for row in rows:
        assert {type(value) for value in row.values()} <= {int, float, str, type(None)}
        assert omg.contexts.context_key(row) is not None


def test_what_is_no_table_is_left_alone():
    generator = (each for each in "ab")
    assert context_rows("contexts", generator) is generator
    matrix = np.eye(2)
    assert context_rows("contexts", matrix) is matrix


@pytest.mark.parametrize("table", [FRAME, FRAME.to_dict("list"), RECORDS, [{"age": 70, "ward": "a", "dose": 0.5}]])
def test_columns_are_those_of_the_table(table):
    found = columns_of("table", table)
    count = len(found["age"])
    assert found == {"age": [70, 50, 60][:count], "ward": ["a", "b", None][:count], "dose": [0.5, None, 1.5][:count]}


@pytest.mark.parametrize(
    "table",
    [None, 3, "text", [], {}, [1, 2], np.eye(2), {"a": [1, 2], "b": [1]}, FRAME.iloc[:0], FRAME[["age", "age"]]],
)
def test_what_has_no_columns_is_refused(table):
    with pytest.raises(ValueError, match="`table` must"):
        columns_of("table", table)


ADVERSARIES = omg.adversaries
LISTS = {
    "iid": lambda table: ADVERSARIES.IID(table).contexts,
    "sequence": lambda table: ADVERSARIES.Sequence(table).contexts,
    "sorted": lambda table: ADVERSARIES.Sorted(table, 6).contexts,
    "worst": lambda table: ADVERSARIES.WorstRegret(table).contexts,
    "never twice": lambda table: ADVERSARIES.NeverTwice(table).contexts,
    "counts": lambda table: omg.oracles.CountRewards(states=1, actions=1, horizon=1, contexts=table).contexts,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_frame_is_a_list_of_contexts(name):
    assert list(LISTS[name](FRAME)) == RECORDS
    with pytest.raises(ValueError, match="must be a list of contexts or a table, got a dict"):
        LISTS[name]({"age": [70, 50]})


class Ward(gymnasium.Env):
    """Two states; the reward of action 1 is the share of the record's dose."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.context, self.step_number = options["context"], 0
        return 0, {"context": self.context}

    def step(self, action):
        self.step_number += 1
        reward = action * self.context["age"] / 100.0
        return int(action), reward, self.step_number == 3, False, {}


def test_a_frame_is_played_row_by_row(tmp_path):
    space = omg.environments.gymnasium_space(Ward(), horizon=3)
    sizes = {"states": space.states, "actions": space.actions, "horizon": 3}
    features = omg.oracles.FeatureMap.fit(FRAME)
    options = {"features": features, "dimension": features.dimension}

    def agent():
        oracles = omg.oracles.LinearRewards(**sizes, **options), omg.oracles.SoftmaxDynamics(**sizes, **options)
        return omg.OMG(space, *oracles)

    learner = agent()
    log = omg.play(Ward(), learner, FRAME)
    assert log.contexts == RECORDS
    learner.save(tmp_path / "agent.npz")
    restored = agent()
    restored.restore(tmp_path / "agent.npz")
    np.testing.assert_array_equal(restored.policy(RECORDS[0]), learner.policy(RECORDS[0]))
    world = omg.environments.from_gymnasium(Ward, FRAME, horizon=3, reward_range=(0, 1))
    assert list(world.contexts) == RECORDS


def test_a_run_over_records_is_saved_and_continued_to_the_bit(tmp_path):
    class World(omg.ContextualMDP):
        space = omg.Space(states=1, actions=2, horizon=2)

        def mdp(self, context):
            return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[0.5, context["age"] / 100.0]])

    def run():
        sizes = {"states": 1, "actions": 2, "horizon": 2}
        oracles = omg.oracles.CountRewards(**sizes, contexts=FRAME), omg.oracles.CountDynamics(**sizes)
        return omg.Run(World(), ADVERSARIES.IID(FRAME), omg.OMG(World.space, *oracles))

    whole, first, second = run(), run(), run()
    whole.advance(8)
    first.advance(4)
    first.save(tmp_path / "run.npz")
    second.restore(tmp_path / "run.npz")
    second.advance(4)
    np.testing.assert_array_equal(second.ledger.regret, whole.ledger.regret)
    assert second.ledger.contexts == whole.ledger.contexts
    assert all(context in RECORDS for context in whole.ledger.contexts)
