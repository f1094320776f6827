"""What is the user's: found because their study file names it, part of the study's identity, and never from results."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import omg_cmdp as omg
from lab.tests.studies import own
from lab.tests.studies.examples import content
from omg_cmdp.documents import FileError
from omg_cmdp.environments import SampledWorld, TableWorld
from omg_lab.cli import app
from omg_lab.studies.config import load_plan, read_plan
from omg_lab.studies.outside.sources import module_sources


def called(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = own.write(tmp_path_factory.mktemp("user"), own.LADDER, own.GARDEN)
    return path, own.run(path, path.parent / "out")


def test_worlds_agents_and_oracles_of_the_user_are_played(study):
    path, results = study
    assert results.failed.empty
    assert len(results.runs) == 2 * 2
    runs = {task.name: task.start() for task in load_plan(str(path)).tasks()}
    omg_run, timid = runs["ladder--iid--omg--0"], runs["ladder--iid--timid--0"]
    assert type(omg_run.environment).__name__ == "Ladder"
    assert len(omg_run.environment.contexts) == 3
    np.testing.assert_array_equal(omg_run.agent.reward_oracle.predict({"skill": 0.5}), np.full((3, 2), 0.4))
    assert omg_run.agent.dynamics_oracle.forecasters.ridge == 2.0
    assert (type(timid.agent).__name__, timid.agent.epsilon(1)) == ("Timid", 0.3)


def test_regret_is_exact_where_there_are_tables_and_unknown_elsewhere(study):
    runs = study[1].runs.set_index("world")
    assert runs.loc["ladder", "regret"].ge(0.0).all()
    assert runs.loc["garden", "regret"].isna().all()
    assert runs.loc["garden", "return"].gt(0.0).all()


def test_gymnasium_by_id_has_its_contexts_from_a_table_and_exact_tables(tmp_path):
    path = own.write(tmp_path, own.LAKE, agents="[agents.uniform]\n")
    lake = load_plan(str(path)).tasks()[0].setting().world
    assert not own.run(path, tmp_path / "out").runs["regret"].isna().any()
    assert isinstance(lake, TableWorld)
    assert lake.contexts == ({"grip": 0.4, "name": "x"}, {"grip": 0.7, "name": "y"}, {"grip": 0.9, "name": "z"})
    known = omg.environments.from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=6)
    assert lake.optimal_value(lake.contexts[2]) == known.optimal_value(0.9)


def test_contexts_may_stand_in_the_file_itself(tmp_path):
    lists = ("[0.4, 0.9]", "[{ grip = 0.4 }, { grip = 0.9 }]", "[[0.4, 1.0], [0.9, 1.0]]")
    arguments = ('"success_rate"', '{ success_rate = "grip" }', None)
    for contexts, argument in zip(lists, arguments, strict=True):
        text = f'episodes = 3\n[worlds.gymnasium]\nid = "FrozenLake-v1"\nhorizon = 4\ncontexts = {contexts}\n'
        text += f"arguments = {argument}\n" if argument else ""
        if argument is None:
            with pytest.raises(FileError, match="contexts"):  # the lake does not take them in `reset`
                read_plan(text + "[agents.omg]\n")
        else:
            assert len(read_plan(text + "[agents.omg]\n").tasks()) == 1


def test_a_table_is_a_list_of_contexts_of_a_world_too(tmp_path):
    path = own.write(tmp_path, own.LADDER, agents="[agents.omg]\n")
    frame = '        import pandas\n        self.contexts = pandas.DataFrame({"skill": draw.random(people)})\n'
    text = own.WORLD.splitlines(keepends=True)
    text = "".join(frame if "self.contexts" in line else line for line in text)
    (tmp_path / "ladder.py").write_text(text)
    world = load_plan(str(path)).tasks()[0].start().environment
    assert [sorted(context) for context in world.contexts] == [["skill"]] * 3


def test_a_class_of_gymnasium_becomes_a_world_that_is_played(study):
    garden = next(task for task in load_plan(str(study[0])).tasks() if task.world.name == "garden").setting().world
    assert isinstance(garden, SampledWorld)
    assert garden.env.open(garden.contexts[0]).price == 0.05
    lengths = study[1].log.query("world == 'garden'")["actions"].map(len)
    assert set(lengths) - {5}  # weeks that ended early are logged as far as they went


@pytest.mark.parametrize(
    "changed", ["ladder.py", *(pytest.param(each, marks=pytest.mark.slow) for each in ("sizes.py", "weeks.csv"))]
)
def test_a_source_that_has_changed_is_another_study(changed, tmp_path):
    head = own.HEAD.replace("episodes = 30", "episodes = 2")
    path = own.write(tmp_path, own.GARDEN if changed == "weeks.csv" else own.LADDER, head=head)
    assert called("run", path, "--out", tmp_path / "out", "--workers", 1, "--quiet").exit_code == 0
    before = content(tmp_path / "out")
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + ("0.5,d\n" if ".csv" in changed else "# more\n"))
    result = called("run", path, "--out", tmp_path / "out", "--workers", 1)
    assert result.exit_code == 2
    assert "other sources or files of" in result.output
    assert content(tmp_path / "out") == before
    (tmp_path / changed).write_text(own.FILES[changed])
    assert called("run", path, "--out", tmp_path / "out", "--workers", 1).exit_code == 0


def test_a_file_that_is_not_named_may_change(study, tmp_path):
    path = own.write(tmp_path, own.LADDER)
    first = load_plan(str(path)).configuration()
    (tmp_path / "garden.py").write_text("")
    (tmp_path / "new.py").write_text("import ladder")
    assert load_plan(str(path)).configuration() == first


def test_a_module_that_changes_after_the_plan_is_refused_by_the_worker(tmp_path):
    task = load_plan(str(own.write(tmp_path, own.LADDER))).tasks()[0]
    (tmp_path / "sizes.py").write_text("STATES = 4\n")
    with pytest.raises(FileError, match="have changed since"):
        task.start()


@pytest.mark.slow
def test_two_studies_may_have_modules_of_one_name(tmp_path):
    plans = []
    for number in (3, 5):
        path = own.write(tmp_path / str(number), own.LADDER)
        (path.parent / "sizes.py").write_text(f"STATES = {number}\n")
        plans.append(load_plan(str(path)))
    for _ in range(2):
        assert [plan.tasks()[0].setting().world.space.states for plan in plans] == [3, 5]


NAMES_OTHERS = """
import sys
from typer.testing import CliRunner
from omg_lab.cli import app
for arguments in (["report"], ["compare"], ["audit"], ["export"]):
    result = CliRunner().invoke(app, [arguments[0], sys.argv[1], *arguments[1:]])
    print(arguments[0], result.exit_code, "--study" in result.output, "Traceback" in result.output)
print(*sorted({name for name in sys.modules if name in ("ladder", "sizes", "garden")}))
"""


@pytest.mark.slow
def test_stored_results_import_nothing_and_the_report_tells_what_was_earned(study):
    pytest.importorskip("matplotlib")
    path, results = study
    command = [sys.executable, "-c", NAMES_OTHERS, str(results.directory)]
    ours = {**os.environ, "PYTHONPATH": str(Path(omg.__file__).parents[1])}
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent, env=ours)
    lines = said.stdout.splitlines()
    assert lines[0] == "report 0 False False"
    assert lines[1] == "compare 0 False False"
    assert lines[2] == "audit 2 True False"
    assert lines[3] == "export 0 False False"
    assert lines[4] == ""
    page = (results.directory / "report.html").read_text()
    assert "World garden" in page
    assert "so there is no regret" in page
    assert "ladder:Ladder" in page


@pytest.mark.slow
def test_a_result_cannot_bring_in_another_module(study, tmp_path):
    """Whoever edits stored results, digest and all, makes nothing run."""
    stored = json.loads(json.dumps(study[1].configuration))
    stored["worlds"]["ladder"]["kind"] = "antigravity:Ladder"
    with pytest.raises(FileError, match="with --study FILE"):
        dataclasses.replace(study[1], configuration=stored).tasks()
    stored = json.loads(json.dumps(study[1].configuration))
    stored["agents"]["timid"] = {"kind": "omg", "oracles": {"rewards": "antigravity:x", "dynamics": "counts"}}
    with pytest.raises(FileError, match=r"agents\.timid .* have changed since"):
        dataclasses.replace(study[1], configuration=stored).tasks(load_plan(str(study[0])))
    assert "antigravity" not in sys.modules


@pytest.mark.slow
def test_an_audit_takes_the_study_file(study):
    path, results = study
    said = called("audit", results.directory, "--study", path, "--episodes", 5, "--runs", "timid")
    assert said.exit_code in (0, 1)
    assert "ladder--iid--timid--0: played again, equal to its log" in said.output
    assert "garden" not in said.output  # nothing is known there that could be checked
    path.with_name("other.toml").write_text(path.read_text().replace("people = 3", "people = 4"))
    refused = called("audit", results.directory, "--study", path.with_name("other.toml"))
    assert refused.exit_code == 2
    assert "worlds.ladder" in refused.output


@pytest.mark.slow
def test_the_terminal_tells_both(tmp_path):
    path = own.write(tmp_path, own.LADDER, own.GARDEN, agents="[agents.omg]")
    result = called("run", path, "--out", tmp_path / "out", "--workers", 1)
    assert "mean regret" in result.output
    assert "mean return" in result.output
    assert "garden--iid--omg--0: return" in result.output


MISTAKES = {
    own.LADDER: [
        ('"ladder:Ladder"', '"ladder:Lader"', "has no attribute 'Lader'"),
        ('"ladder:Ladder"', '"leader:Ladder"', "No module named 'leader'"),
        ('"ladder:Ladder"', '"ladder"', "has no kind 'ladder'"),
        ('"ladder:Ladder"', '"ladder:STATES"', "must be a class or a function"),
        ('"ladder:Ladder"', '"ladder:Timid"', "has no option 'people'"),
        ('"ladder:Ladder"', '"os.path:join"', "has no option 'people'"),
        ("people = 3", "peple = 3", "did you mean 'people'?"),
        ("people = 3", "people = 0", "a world must have `contexts`"),
        ("people = 3", 'people = "x"', "TypeError"),
        ("people = 3", "horizon = 0", "`horizon`"),
        ('kind = "ladder:Halves"', 'kind = "ladder:Timid"', "has no option 'value'"),
        ('kind = "ladder:Halves"', 'kind = "ladder:Nobody"', "has no attribute 'Nobody'"),
        ("value = 0.4", "valu = 0.4", "did you mean 'value'?"),
        ('kind = "softmax"', 'kind = "softmix"', "dynamics must be one of"),
        ("ridge = 2.0", "rigde = 2.0", "did you mean 'ridge'?"),
        ("epsilon = 0.3", "epsilon = -1.0", "`epsilon`"),
        ('kind = "ladder:Timid"\nepsilon = 0.3', 'kind = "ladder:Ladder"\npeople = 3', "an agent must be an Agent"),
    ],
    own.GARDEN: [
        ('"weeks.csv"', '"weaks.csv"', "weaks.csv"),
        ('"weeks.csv"', "3", "`contexts` must be a list"),
        ("horizon = 5", "horizont = 5", "did you mean 'horizon'?"),
        ("price = 0.05", "prize = 0.05", "prize"),
        ("reward_range = [-0.1, 1.0]", "", "`reward_range` must be given"),
    ],
    own.LAKE: [
        ('id = "FrozenLake-v1"', 'id = "FrozenLak-v1"', "FrozenLak"),
        ('id = "FrozenLake-v1"', 'id = "ladder:FrozenLake-v1"', "`id` must have no module"),
        ('success_rate = "grip"', 'success_rate = "grib"', "`arguments` must name columns"),
    ],
}


@pytest.mark.parametrize(
    ("world", "old", "new", "said"), [(world, *mistake) for world, mistakes in MISTAKES.items() for mistake in mistakes]
)
def test_what_is_wrong_with_the_users_things_is_said_in_a_line(world, old, new, said, tmp_path):
    path = own.write(tmp_path, world)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    result = called("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "own.toml, line" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("broken", ["def", "1 / 0", "import nowhere", "raise SystemError('no')"])
def test_a_module_that_cannot_be_imported_is_an_error_with_its_line(broken, tmp_path):
    path = own.write(tmp_path, own.LADDER)
    (tmp_path / "sizes.py").write_text(f"STATES = 3\n{broken}\n")
    result = called("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "'ladder:Ladder' cannot be imported" in result.output
    assert "line 2" in result.output


def test_modules_of_one_study_stay_what_they_are_while_others_are_imported(tmp_path):
    path = own.write(tmp_path, own.LADDER, own.GARDEN)
    text = path.read_text().replace('"ladder:Halves"', '"halves:Halves"')
    (tmp_path / "halves.py").write_text("from ladder import Halves\n")
    path.write_text(text)
    tasks = load_plan(str(path)).tasks()
    first = tasks[0].start().environment
    for task in tasks:
        task.start()
    assert type(tasks[0].start().environment) is type(first)
    assert type(first) is sys.modules["ladder"].Ladder


def test_a_file_with_the_name_of_another_module_is_refused(tmp_path):
    path = own.write(tmp_path, own.LADDER)
    (tmp_path / "json.py").write_text(own.WORLD)
    path.write_text(path.read_text().replace("ladder:Ladder", "json:Ladder"))
    assert "must have another name" in called("run", path, "--out", tmp_path / "out").output


def test_the_folder_of_the_user_is_left_as_it_was(tmp_path):
    load_plan(str(own.write(tmp_path, own.LADDER)))
    assert {each.name for each in tmp_path.iterdir()} == {*own.FILES, "own.toml"}


def test_sources_are_a_module_and_what_it_imports_beside_it(tmp_path):
    files = {
        "a.py": "import b.c, numpy\nfrom . import lost",
        "b/__init__.py": "",
        "b/c.py": "from .d import x\nfrom b import e",
        "b/d.py": "x = 1",
        "b/e.py": "import a",
        "other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [str(path.relative_to(tmp_path)) for path in module_sources("a", tmp_path)]
    assert found[0] == "a.py"
    assert set(found) == set(files) - {"other.py"}
    assert module_sources("numpy", tmp_path) == []


SHARED = """
import omg_cmdp as omg

KEPT = {}


def agent(world):
    return KEPT.setdefault("agent", omg.agents.Informed(world.space, world.mdp))


def adversary(contexts):
    return KEPT.setdefault("adversary", omg.adversaries.Sequence(contexts))


def oracle(states, actions, horizon):
    return KEPT.setdefault("oracle", omg.oracles.CountRewards(states=states, actions=actions, horizon=horizon))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[agents.mine]\nkind = "shared:agent"\n', "the same agent"),
        ('[agents.omg]\n[adversaries.mine]\nkind = "shared:adversary"\n', "the same adversary"),
        (
            '[agents.mine]\nkind = "omg"\noracles = { rewards = "shared:oracle", dynamics = "counts" }\n',
            "the same reward oracle",
        ),
    ],
)
def test_what_one_run_leaves_behind_is_not_the_beginning_of_the_next(table, said, tmp_path):
    """Of objects that are made once, results would depend on which worker plays which run first."""
    path = own.write(tmp_path, own.LADDER, agents=table)
    (tmp_path / "shared.py").write_text(SHARED)
    with pytest.raises(FileError, match=f"'mine' in the world 'ladder': two runs would have {said}; make a fresh one"):
        load_plan(str(path))


HIDDEN = """
import pathlib
import numpy as np
import omg_cmdp as omg
import gymnasium
from gymnasium.spaces import Discrete

PAYS = pathlib.Path(__file__).with_name("pays.txt")  # which nothing in the study names


class Exact(omg.ContextualMDP):
    space, contexts = omg.Space(states=1, actions=2, horizon=3), ("a", "b")

    def mdp(self, context):
        rewards = np.array([[0.5, float(PAYS.read_text())]])
        return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=rewards)


class Played(gymnasium.Env):
    observation_space, action_space = Discrete(1), Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.share = options["context"] if options else 0.5
        return 0, {}

    def step(self, action):
        reward = float(PAYS.read_text()) if action else self.share
        return 0, reward, False, bool(self.np_random.random() < 0.1), {}
"""
HIDDEN_WORLDS = {
    "tables": '[worlds.hidden]\nkind = "hidden:Exact"\n',
    "played": '[worlds.hidden]\nkind = "hidden:Played"\ncontexts = [0.2, 0.4]\nhorizon = 3\nreward_range = [0, 1]\n',
}


@pytest.fixture(params=HIDDEN_WORLDS)
def hidden(request, tmp_path):
    """Return a study whose world depends on a file that nothing names."""
    path = own.write(tmp_path, HIDDEN_WORLDS[request.param], agents="[agents.first]\nkind = 'uniform'\n")
    (tmp_path / "hidden.py").write_text(HIDDEN)
    (tmp_path / "pays.txt").write_text("0.75")
    return path


def test_a_checkpoint_of_another_world_is_not_continued(hidden, tmp_path):
    own.run(hidden, tmp_path / "out")
    run = "hidden--iid--first--0"
    (tmp_path / "out" / "runs" / f"{run}.json").unlink()
    (tmp_path / "pays.txt").write_text("0.25")
    results = own.run(hidden, tmp_path / "out")
    [error] = results.failed["error"]
    assert f"state/{run}.npz: its world is not the one that is built now" in error
    assert "delete it, and the run is played from its beginning" in error


@pytest.mark.slow
def test_agents_that_were_played_in_other_worlds_are_not_compared(hidden, tmp_path):
    own.run(hidden, tmp_path / "out")
    (tmp_path / "pays.txt").write_text("0.25")
    hidden.write_text(hidden.read_text() + "[agents.second]\nkind = 'uniform'\n")
    with pytest.raises(FileError, match=r"hidden--iid--second--0\.json: it was played in another world than"):
        own.run(hidden, tmp_path / "out")
    (tmp_path / "pays.txt").write_text("0.75")
    (tmp_path / "out" / "runs" / "hidden--iid--second--0.json").unlink()
    (tmp_path / "out" / "state" / "hidden--iid--second--0.npz").unlink()
    assert len(own.run(hidden, tmp_path / "out").runs) == 2
