"""A trial from its trial file to the final analysis, with what goes wrong: a small one, and one of 120 people."""

import json

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import omg_cmdp as omg
from omg_cmdp.contexts import context_from_json
from omg_trial import desk as desks
from omg_trial.cli import app
from omg_trial.contract import Refusal
from omg_trial.desk import Desk
from omg_trial.export import live_log
from omg_trial.log.database import Database, StoreError
from omg_trial.trial_file.trial import Trial
from trial.tests.trials import Clock

STEPS, FRAUD = 2, "p13"
SIZES = [pytest.param((24, 8), id="small"), pytest.param((120, 30), id="whole", marks=pytest.mark.slow)]
"""People and days."""
TRIAL = """
[trial]
name = "twice a day"
horizon = 2
time_zone = "Europe/Berlin"

[states]
names = ["took it", "missed it"]
start = { "took it" = 0.6, "missed it" = 0.4 }

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.5, reminder = 0.5 }

[context.columns]
age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }

[rewards]
[dynamics]

[exploration]
floor = 0.2

[learning]
after_episodes = 0
"""


def chance(context, state, action):
    """The truth: how likely somebody takes their pill. Reminders tire the old, and help whoever has missed one."""
    old = (context["age"] - 20) / 70
    helped = {"nothing": 0.0, "reminder": 0.25 - 0.3 * old + 0.1 * (state == "missed it")}[action]
    return 0.35 + 0.2 * (state == "took it") + 0.1 * (context["lives"] != "alone") + helped


def truth(trial, context):
    """The same as an MDP."""
    took = np.array([[chance(context, state, action) for action in trial.actions] for state in trial.states])
    return trial.space.mdp(transitions=np.stack([took, 1.0 - took], axis=-1), rewards=took)


class Flaky(Database):
    """A database that fails now and then: before it has kept a batch, or after it has, so that nobody hears of it."""

    def __init__(self, path, generator):
        self.generator, self.failures = generator, 0
        super().__init__(path)

    def append(self, events):
        fails = self.generator.random(2) < 0.03
        self.failures += fails.any()
        if fails[0]:
            raise StoreError("gone before it was kept")
        super().append(events)
        if fails[1]:
            raise StoreError("gone after it was kept")


class Simulation:
    """People, their app, and a day's worth of calls at a time."""

    def __init__(self, trial, path, people, days, seed):
        self.days = days
        self.generator = np.random.default_rng(seed)
        self.trial, self.clock = trial, Clock()
        self.store = Flaky(path, self.generator)
        self.desk = Desk(trial, self.store, clock=self.clock)
        ages, alone = self.generator.uniform(15, 95, people), self.generator.random(people) < 0.5
        self.people = {
            f"p{number}": {"age": float(age), "lives": "alone" if lonely else "with others"}
            for number, (age, lonely) in enumerate(zip(ages, alone, strict=True))
        }
        self.calls, self.late = 0, []

    def ask(self, calls):
        """Return the answers to calls that are made at once; after an outage all are sent again, with their keys."""
        asked = []
        for name, body in calls:
            self.calls += 1
            asked.append(self.desk.prepare(name, body, f"key-{self.calls}"))
        while True:
            try:
                answers = self.desk.answer(asked)
            except StoreError:
                continue
            assert not any(isinstance(answer, Refusal) for answer in answers), answers
            return [json.loads(answer.text) for answer in answers]

    def day(self, number):
        self.clock.forward(hours=12)
        names = sorted(self.people)
        opened = self.ask([("open", {"person": name, "context": self.people[name]}) for name in names])
        under_way = {
            answer["episode"]: (name, str(self.generator.choice(self.trial.states, p=self.trial.space.start)))
            for name, answer in zip(names, opened, strict=True)
        }
        for step in range(STEPS):
            told = self.ask([("decide", {"episode": e, "step": step, "state": s}) for e, (_, s) in under_way.items()])
            reports, left = [], []
            for answer in told:
                episode = answer["episode"]
                name, state = under_way[episode]
                took = self.generator.random() < chance(self.people[name], state, answer["action"])
                after = "took it" if took else "missed it"
                claimed = 1.0 if name == FRAUD else float(took)
                outcome = {"episode": episode, "step": step, "reward": claimed, "next_state": after}
                fate = self.generator.random()
                if fate < 0.70:
                    reports.append(("report", outcome))
                elif fate < 0.98:  # it comes within three days, perhaps twice; else never
                    copies = 1 + int(self.generator.random() < 0.1)
                    self.late += [(number + int(self.generator.integers(1, 4)), outcome)] * copies
                under_way[episode] = name, after
                if self.generator.random() < 0.02:
                    left.append(episode)
            self.ask(reports)
            self.ask([("close", {"episode": episode, "cause": "dropped out"}) for episode in left])
            for episode in left:
                del under_way[episode]
        self.ask([("close", {"episode": episode}) for episode in under_way])
        due = [outcome for day, outcome in self.late if day <= number]
        self.late = [(day, outcome) for day, outcome in self.late if day > number]
        self.generator.shuffle(due)
        self.ask([("report", outcome) for outcome in due if outcome["episode"] in self.desk.state.episodes])
        for name in [name for name in names if name != FRAUD and self.generator.random() < 0.003]:
            del self.people[name]  # never seen again
        self.clock.forward(hours=12)

    def night(self):
        """Learn, and try again if the store fails meanwhile."""
        self.ask([("learn", {})])
        while self.desk.lost or self.desk.learning_due() or self.desk.state.learning is not None:
            try:
                if self.desk.lost:
                    self.desk.recover()
                if self.desk.learning_due():
                    self.ask([("learn", {})])  # a key of its own: the same key would be the same call
                self.desk.learn_here()
            except StoreError:
                continue

    def play(self):
        for number in range(self.days):
            self.day(number)
            if number == self.days // 2:
                self.ask([("withdraw", {"person": FRAUD})])
                del self.people[FRAUD]
            self.night()
        self.store.close()


@pytest.fixture(scope="module", params=SIZES)
def played(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial")
    file = folder / "trial.toml"
    file.write_text(TRIAL)
    with pytest.MonkeyPatch.context() as patch:  # the same draws whenever this is run
        patch.setattr(desks.secrets, "token_hex", lambda size=32: "5" * 2 * size)
        simulation = Simulation(Trial.read(file), folder / "trial.db", *request.param, seed=0)
        simulation.play()
    return simulation, folder


@pytest.fixture(scope="module")
def table(played):
    _, folder = played
    done = CliRunner().invoke(app, ["export", str(folder / "trial.db"), "--out", str(folder / "decisions.parquet")])
    assert done.exit_code == 0, done.output
    return pandas.read_parquet(folder / "decisions.parquet")


@pytest.fixture(scope="module")
def log(played):
    simulation, folder = played
    store = Database(folder / "trial.db", writing=False)
    found = live_log(simulation.trial, store.read())
    store.close()
    return found


def test_the_trial_had_its_troubles(played, table):
    simulation, _ = played
    assert simulation.store.failures > simulation.days / 3
    assert set(table["closed"]) == {"finished", "dropped out"}
    assert table["reward"].isna().any()
    assert simulation.desk.state.version.number >= simulation.days
    assert simulation.desk.state.withdrawn == {FRAUD}


def test_everything_was_decided_once_with_its_probability(played, table):
    simulation, _ = played
    days = table.groupby("person")["episode"].nunique()
    assert not table.duplicated(["episode", "step"]).any()
    assert days.max() == simulation.days
    of_action = table[[f"probability_{name}" for name in simulation.trial.actions]].to_numpy()
    places = table["action"].map(simulation.trial.actions.index).to_numpy(int)
    assert (of_action[np.arange(len(table)), places] == table["probability"]).all()
    assert (of_action >= 0.2 - 1e-12).all()
    assert set(table.loc[table["withdrawn"], "person"]) == {FRAUD}
    assert days[FRAUD] == simulation.days // 2 + 1


def test_the_interval_covers_the_exact_value(played, log):
    """Of the fixed policy, which the log did not play: the simulator knows what it is worth."""
    trial = played[0].trial
    whole, policy = log.whole(), trial.fixed_policy()
    exact = np.mean([omg.policy_value(truth(trial, context), policy) for context in whole.contexts])
    plain = omg.logs.importance_sampling(whole, lambda context: policy)
    low, high = plain.interval(0.99)
    assert low < exact < high
    assert high - low < 10 / np.sqrt(len(whole))
    assert plain.effective_sample_size > len(whole) / 3


def test_it_has_learned_to_do_better_than_the_fixed_policy(played, log):
    """In expectation, by the truth, for those who came last."""
    simulation, _ = played
    agent, trial = simulation.desk.agent, simulation.trial
    gains = [
        omg.policy_value(mdp, trial.floor.policy(agent.policy(context))) - omg.policy_value(mdp, trial.fixed_policy())
        for context in simulation.people.values()
        for mdp in [truth(trial, context)]
    ]
    assert np.mean(gains) > 0.0


def test_the_statistician_gets_the_same_from_the_table_alone(table, log):
    kept = table[~table["withdrawn"]].sort_values(["episode", "step"])
    weights = (0.5 / kept["probability"]).groupby(kept["episode"]).cumprod()
    known = kept["reward"].notna() & kept["next_state"].notna()
    steps = kept.assign(weighted=weights * kept["reward"], known=known).groupby("episode")
    episodes = steps.agg(steps=("step", "size"), known=("known", "all"), weighted=("weighted", "sum"))
    whole = episodes[(episodes["steps"] == STEPS) & episodes["known"]]
    estimate = omg.logs.importance_sampling(log.whole(), lambda context: np.full((2, 2, 2), 0.5))
    assert len(whole) == len(log.whole())
    assert whole["weighted"].mean() == pytest.approx(estimate.value)


def test_the_log_replays_to_the_bit(played):
    done = CliRunner().invoke(app, ["replay", str(played[1] / "trial.db")])
    assert done.exit_code == 0, done.output
    assert "Equal to the log, bit for bit." in done.output


def test_contexts_come_back_as_they_were_sent(played, table):
    simulation, _ = played
    records = simulation.desk.state.episodes
    for row in table.drop_duplicates("episode").head(200).itertuples():
        if row.episode in records:
            sent = context_from_json(records[row.episode].context)
            assert (row.context_age, row.context_lives) == (sent["age"], sent["lives"])
