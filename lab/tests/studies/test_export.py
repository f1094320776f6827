"""What is exported says what the log says, in the words of other programs."""

import itertools
import json
import re

import numpy as np
import pandas
import pytest
from pyarrow import parquet

from lab.tests.studies import own
from lab.tests.studies.examples import run_study
from library.tests.logs.tables import same
from omg_cmdp.contexts import context_from_json, context_to_json
from omg_cmdp.logs import read_export
from omg_lab.studies.config import load_plan, read_plan
from omg_lab.studies.export import export
from omg_lab.worlds import TreatmentTrial

STUDY = """
episodes = 30
seeds = 2
checkpoint = 12
propensities = {}
[worlds.treatment]
context_count = 5
[worlds.decoy]
context_count = 3
[agents.omg]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run_study(STUDY.format("true"), tmp_path_factory.mktemp("study"))


def test_a_csv_holds_every_row(results, tmp_path):
    [path] = export(results, "csv", tmp_path)
    table = pandas.read_csv(path)
    assert list(table) == list(results.log)
    np.testing.assert_allclose(table["cumulative_regret"], results.log["cumulative_regret"], rtol=1e-15)
    assert json.loads(table["propensities"][7]) == results.log["propensities"][7].tolist()


def test_no_name_is_a_formula_in_a_csv(tmp_path):
    text = 'episodes = 2\n[worlds.decoy]\ncontext_count = 2\n[agents."=1+1"]\nkind = "uniform"'
    [path] = export(run_study(text, tmp_path / "study"), "csv", tmp_path)
    assert set(pandas.read_csv(path)["agent"]) == {"'=1+1"}


def test_an_export_is_replaced_whole_or_not_at_all(results, tmp_path, monkeypatch):
    """It fails at the third part of the log."""
    original, calls = parquet.ParquetFile, itertools.count()

    def failing(*arguments, **settings):
        if next(calls) == 2:
            raise RuntimeError("on the way")
        return original(*arguments, **settings)

    (tmp_path / "log.csv").write_text("the old one")
    monkeypatch.setattr(parquet, "ParquetFile", failing)
    with pytest.raises(RuntimeError, match="on the way"):
        export(results, "csv", tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the old one"]


def decisions(log):
    """Return the steps of the log with a decision: (episode, step, state) of a trial, where 0 and 4 are its ends."""
    visited = [
        (episode, step, state) for episode, row in enumerate(log["states"]) for step, state in enumerate(row[:-1])
    ]
    return [each for each in visited if each[2] not in (0, 4)]


def test_obp_gets_a_round_per_decision_with_its_propensity(results, tmp_path):
    paths = export(results, "obp", tmp_path)
    assert len(paths) == 4
    log = results.log[(results.log["world"] == "treatment") & (results.log["seed"] == 1)]
    decided = decisions(log)
    with np.load(tmp_path / "treatment--iid--omg--1.npz") as feedback:
        assert int(feedback["n_rounds"]) == len(decided) == len(feedback["action"]) < 30 * 6
        assert int(feedback["n_actions"]) == 3
        for name, column in (("pscore", "propensities"), ("reward", "rewards"), ("action", "actions")):
            np.testing.assert_array_equal(feedback[name], [log[column].iloc[e][h] for e, h, _ in decided])
        for row, (episode, step, state) in zip(feedback["context"], decided, strict=True):
            np.testing.assert_array_equal(row[:4], context_from_json(log["context"].iloc[episode]))
            assert row[4:].tolist() == [*np.eye(5)[state], *np.eye(6)[step]]


def test_propensities_are_the_policys_probabilities_of_what_was_done(results):
    for task in read_plan(STUDY.format("true")).tasks():
        rounds = []
        task.start(observe=rounds.append).advance(30)
        log = results.log[(results.log["world"] == task.world.name) & (results.log["seed"] == task.seed)]
        for this, actions, propensities in zip(rounds, log["actions"], log["propensities"], strict=True):
            states = this.played.states[:-1]
            chances = this.decision.policy[np.arange(len(actions)), states, actions]
            np.testing.assert_array_equal(propensities, chances)


def test_vw_gets_a_line_per_decision(results, tmp_path):
    export(results, "vw", tmp_path)
    lines = (tmp_path / "treatment--iid--omg--0.vw").read_text().splitlines()
    log = results.log[(results.log["world"] == "treatment") & (results.log["seed"] == 0)]
    for line, (episode, place, place_state) in zip(lines, decisions(log), strict=True):
        row = log.iloc[episode]
        label, context, state, step = (part.strip() for part in line.split("|"))
        action, cost, probability = label.split(":")
        assert int(action) == row["actions"][place] + 1
        assert float(cost) == 1.0 - row["rewards"][place]
        assert float(probability) == row["propensities"][place]
        assert (state, step) == (f"state s{place_state}", f"step h{place}")
        values = [float(each.split(":")[1]) for each in context.split()[1:]]
        assert values == context_from_json(row["context"]).tolist()
    assert re.search(r"\|context [cj]", (tmp_path / "decoy--iid--omg--0.vw").read_text())


def test_propensities_must_have_been_logged(tmp_path):
    results = run_study(STUDY.format("false"), tmp_path)
    with pytest.raises(ValueError, match="propensities = true"):
        export(results, "vw", tmp_path / "out")
    with pytest.raises(ValueError, match="`form`"):
        export(results, "xml", tmp_path / "out")
    [path] = export(results, "csv", tmp_path / "out")
    assert "propensities" not in pandas.read_csv(path)


def test_exports_are_read_back(tmp_path):
    """As logs of the library; and so is the folder `log` of the study itself."""
    study = "episodes = 20\nseeds = 1\npropensities = true\n[worlds.treatment]\ncontext_count = 3\n[agents.omg]"
    results = run_study(study, tmp_path / "study")
    space = TreatmentTrial(context_count=3).space
    logs = [
        read_export(pandas.read_csv(export(results, "csv", tmp_path)[0]), space),
        read_export(pandas.read_parquet(tmp_path / "study" / "log"), space),
    ]
    for log in logs:
        assert same(log, logs[0])
        np.testing.assert_array_equal(log.propensities, np.stack(results.log["propensities"].to_list()))
        np.testing.assert_array_equal(log.states, np.stack(results.log["states"].to_list()))
        assert len({context.tobytes() for context in log.contexts}) <= 3


LABELS = """
import numpy as np
import omg_cmdp as omg


class Labels(omg.ContextualMDP):
    space = omg.Space(states=1, actions=2, horizon=2)
    contexts = (1, "1", 1.0, True, {"age": 1}, {"age": "1"}, ("a", 1), ("a", "1"))

    def mdp(self, context):
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=np.full((1, 2), 0.5))
"""


def test_contexts_that_look_alike_are_not_merged(tmp_path):
    path = own.write(tmp_path, '[worlds.labels]\nkind = "labels:Labels"\n', agents="[agents.uniform]\n")
    (tmp_path / "labels.py").write_text(LABELS)
    results, study = own.run(path, tmp_path / "out"), load_plan(str(path))
    world = study.tasks()[0].setting().world
    texts = [context_to_json(context) for context in world.contexts]
    places = np.repeat([texts.index(text) for text in results.log["context"]], 2)
    assert len(set(places)) == len(world.contexts)
    [file] = export(results, "obp", tmp_path / "obp", study)
    with np.load(file) as feedback:
        np.testing.assert_array_equal(feedback["context"][:, : len(texts)].argmax(axis=1), places)


TERMINATING = """
import gymnasium
from gymnasium.spaces import Discrete


class Pond(gymnasium.Env):
    observation_space, action_space = Discrete(2), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.depth = options["context"] if options else 0.5
        return 0, {}

    def step(self, action):
        sunk = bool(self.np_random.random() < self.depth)
        return 1, 3.0 * action, sunk, False, {}
"""
POND = '[worlds.pond]\nkind = "pond:Pond"\ncontexts = [0.3, 0.6]\nhorizon = 6\nreward_range = [0.0, 3.0]\n'


@pytest.mark.parametrize("world", ["lake", "pond", "frozen_lake", "cliff_walking", "corridor"])
def test_steps_after_the_end_are_no_decisions(world, tmp_path):
    """They are in the log, whose episodes have H steps, in a state where one action is left, and nothing changes."""
    kinds = {"lake": own.LAKE, "pond": POND}
    path = own.write(tmp_path, kinds.get(world, f"[worlds.{world}]\n"), agents="[agents.uniform]\n")
    (tmp_path / "pond.py").write_text(TERMINATING)
    results, study = own.run(path, tmp_path / "out"), load_plan(str(path))
    space = study.tasks()[0].setting().world.space
    visited = np.concatenate([states[:-1] for states in results.log["states"]])
    decided = visited != space.states - 1  # where ended episodes stay
    assert decided.sum() > 0
    assert decided.all() == (world == "cliff_walking")  # nobody gets there by chance in 30 episodes
    for form in ("obp", "vw"):
        [file] = export(results, form, tmp_path / form, study)
        if form == "vw":
            assert len(file.read_text().splitlines()) == decided.sum()
            continue
        with np.load(file) as feedback:
            assert feedback["n_rounds"] == decided.sum()
            rewards = np.concatenate(results.log["rewards"].to_list())
            np.testing.assert_array_equal(feedback["reward"], rewards[decided])


def test_costs_are_counted_from_the_best_reward_of_the_world(tmp_path):
    path = own.write(tmp_path, POND, agents="[agents.uniform]\n")
    (tmp_path / "pond.py").write_text(TERMINATING)
    [file] = export(own.run(path, tmp_path / "out"), "vw", tmp_path / "vw", load_plan(str(path)))
    costs = {float(line.split(":")[1]) for line in file.read_text().splitlines()}
    assert costs == {0.0, 3.0}
