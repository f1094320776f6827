"""A study file becomes a plan, or one error that says where it is wrong, and what is right."""

import json
import random

import pytest

from omg_cmdp.documents import FileError
from omg_lab.studies.config import checked_plan, load_plan, presets, read_plan
from omg_lab.studies.overrides import Override
from omg_lab.studies.plan import slug

VALID = """\
description = "a study"
episodes = 30
seeds = [0, 3]
seed = 7

[worlds.treatment]
context_count = 6

[worlds.small]
kind = "linear"
states = 3
context_count = 5

[adversaries.iid]

[adversaries.hard]
kind = "worst_regret"
look = 2

[agents.omg]
delta = 0.1

[agents.slow]
kind = "epsilon_greedy"
epsilon = { scale = 0.5, exponent = -0.3 }

[agents.ucbvi]
cover = "per_ball"
radius = 0.3
"""


def refused(text, *overrides):
    with pytest.raises(FileError) as caught:
        read_plan(text, overrides, name="study", file="study.toml")
    return str(caught.value)


def line_of(text, start):
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


def test_a_plan_is_the_product_of_its_parts():
    plan = read_plan(VALID, name="study")
    tasks = plan.tasks()
    assert len(tasks) == len({task.name for task in tasks}) == 2 * 2 * 2 * 3
    assert (plan.episodes, plan.seeds, plan.seed, plan.name) == (30, (0, 3), 7, "study")
    assert tasks[0].name == "treatment--iid--omg--0"
    assert plan.agents[1].kind == "epsilon_greedy"
    assert plan.worlds[1].options == {"states": 3, "context_count": 5}


def test_a_configuration_that_was_resolved_is_the_same_plan():
    plan = read_plan(VALID, name="study")
    assert checked_plan(json.loads(json.dumps(plan.configuration()))) == plan


def test_agents_meet_the_same_world_and_noise_and_seeds_differ():
    plan = read_plan(VALID, name="study")
    runs = {task.name: task.start() for task in plan.tasks() if task.agent.name != "slow"}
    for run in runs.values():
        run.advance(1)
    contexts = {name: run.ledger.contexts[0].tolist() for name, run in runs.items()}
    structures = {name: run.environment.contexts[0].tolist() for name, run in runs.items()}
    assert contexts["treatment--iid--omg--0"] == contexts["treatment--iid--ucbvi--0"]
    assert structures["small--iid--omg--3"] == structures["small--hard--ucbvi--3"]
    assert structures["small--iid--omg--3"] != structures["small--iid--omg--0"]
    noises = {name: json.dumps(run._noise.bit_generator.state) for name, run in runs.items()}
    assert noises["small--iid--omg--3"] == noises["small--iid--ucbvi--3"]
    assert len(set(noises.values())) == 8


@pytest.mark.parametrize(
    ("line", "replacement", "said"),
    [
        ("episodes = 30", "epsiodes = 30", "did you mean 'episodes'?"),
        ("episodes = 30", "episodes = 0", "`episodes`"),
        ("episodes = 30", "episodes = true", "`episodes`"),
        ("seeds = ", "seeds = [1, 1]", "`seeds`"),
        ("seeds = ", "seeds = 100001", "`seeds`"),
        ("seeds = ", "seeds = 50000", "100000 runs"),
        ("seed = 7", "seed = -1", "`seed`"),
        ("[worlds.treatment]", "[worlds.treatmint]", "did you mean 'treatment'?"),
        ("context_count = 6", "contxt_count = 6", "did you mean 'context_count'?"),
        ("context_count = 6", "context_count = 0", "`context_count`"),
        ("context_count = 6", "context_count = 6.5", "`context_count`"),
        ('kind = "linear"', 'kind = "lineal"', "did you mean 'linear'?"),
        ('kind = "linear"', "kind = 3", "[worlds] has no kind 3"),
        ("states = 3", "states = 100000000", "tables"),
        ('kind = "worst_regret"', 'kind = "worst_regrets"', "did you mean 'worst_regret'?"),
        ("look = 2", "look = 6", "`look`"),
        ("delta = 0.1", "dellta = 0.1", "did you mean 'delta'?"),
        ("delta = 0.1", "delta = -0.1", "`delta`"),
        ("delta = 0.1", 'gamma = "theory "', "`gamma`"),
        ("epsilon = ", "epsilon = { scale = 1.0 }", "`epsilon`"),
        ("epsilon = ", "epsilon = 1979-05-27", "`epsilon`"),
        ("radius = 0.3", 'radius = "far"', "`radius`"),
        ("radius = 0.3", "radius = 0.3 0.4", "Expected newline"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line, replacement, said):
    number = line_of(VALID, line)
    lines = VALID.splitlines()
    message = refused("\n".join([*lines[: number - 1], replacement, *lines[number:]]))
    assert f"line {number}" in message
    assert message.startswith("study.toml")
    assert said in message


@pytest.mark.parametrize(
    ("agent", "world", "said"),
    [
        ("square_cb", "treatment", "horizon 1"),
        ("feel_good", "lower_bound", "FiniteRewards"),
        ("omg", "lower_bound", None),
        ("square_cb", "bandit", None),
    ],
)
def test_combinations_that_cannot_be_played_are_refused(agent, world, said):
    text = f"episodes = 9\n[agents.{agent}]\n[worlds.{world}]\n"
    if said is None:
        assert len(read_plan(text).tasks()) == 1
    else:
        message = refused(text)
        assert "line 2" in message
        assert f"'{agent}' in the world '{world}'" in message
        assert said in message


def test_a_wrong_argument_of_an_oracle_has_the_line_of_the_file_and_none_of_ours():
    text = "episodes = 9\n[worlds.decoy]\n[agents.greedy]\n"
    text += 'oracles = { rewards = { kind = "linear", ridge = -1.0 }, dynamics = "counts" }\n'
    with pytest.raises(FileError) as caught:
        read_plan(text, name="study", file="study.toml")
    said = "'greedy' in the world 'decoy': `ridge` must be a positive, finite number, got -1.0"
    assert str(caught.value) == f"study.toml, line 4: {said}"


def test_what_shows_only_when_an_agent_decides_is_refused():
    text = 'episodes = 9\n[worlds.linear]\n[agents.omg]\ngamma = "theory"\noracles = "offline"\n'
    assert "regret_bound" in refused(text)


def test_contexts_that_run_out_are_refused():
    assert "line 3" in refused("episodes = 99\n[worlds.linear]\n[adversaries.never_twice]\n[agents.omg]\n")


def test_options_without_a_default_are_asked_for():
    assert "needs the option 'id'" in refused("episodes = 9\n[worlds.gymnasium]\n[agents.omg]\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`episodes` must be given"),
        ("episodes = 3", "[worlds.NAME]"),
        ("episodes = 3\nworlds = 3", "[worlds.NAME]"),
        ("episodes = 3\n[worlds]\nlinear = 3", "[worlds.linear]"),
        ("episodes = 3\n[worlds.linear]", "[agents.NAME]"),
        ("episodes = 3\nname = 3\n[worlds.linear]\n[agents.omg]", "`name`"),
        ("episodes = 3\npropensities = 3\n[worlds.linear]\n[agents.omg]", "`propensities`"),
        ('episodes = 3\n[worlds.linear]\n[agents."!?"]\nkind="omg"', "name must have"),
        ('episodes = 3\n[worlds.linear]\n[agents."a b"]\nkind="omg"\n[agents.a-b]\nkind="omg"', "same file name"),
    ],
)
def test_other_errors_are_named(text, said):
    assert said in refused(text)


BARE = "episodes = 3\n[worlds.linear]\n[agents.omg]"


@pytest.mark.parametrize("name", ["", " ", "/abs", "../x", "..", "a/b", "a\\b", "\x1b[2J", "a\nb", "\u2028a", "x" * 61])
def test_names_that_are_no_names_are_refused(name):
    """A study's name is that of its folder, and all names are shown on terminals."""
    assert "a name must have" in refused(f"name = {json.dumps(name)}\n{BARE}")
    assert "a name must have" in refused(f'{BARE}\n[agents.{json.dumps(name)}]\nkind = "greedy"')


@pytest.mark.parametrize("name", ["=1+1", "-slow", "@home", "ω, κ = 0.1", "日本語", "50 %", "a.b"])
def test_names_of_people_are_not(name):
    assert read_plan(f'{BARE}\n[agents.{json.dumps(name, ensure_ascii=False)}]\nkind = "greedy"').agents[1].name == name


def test_names_too_long_for_a_file_are_refused():
    long = json.dumps("字" * 50, ensure_ascii=False)
    assert read_plan(BARE.replace("agents.omg", f"agents.{long}") + '\nkind = "omg"').agents[0].name == "字" * 50
    both = f'episodes = 3\n[worlds.{long}]\nkind = "linear"\n[agents.{long}]\nkind = "omg"'
    assert "names must be shorter" in refused(both)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (f"seeds = [{2**64}]", "`seeds` must be an integer in "),
        (f"seed = {2**64}", "`seed` must be an integer in "),
        (f"episodes = {10**20}", "`episodes` must be an integer in "),
        ("episodes = 1e20", "`episodes` must be an integer of at least 1"),
        (f"checkpoint = {10**20}", "`checkpoint` must be an integer in "),
        ("episodes = 3000000\ncheckpoint = 1", "`checkpoint` must leave at most 1000000 checkpoints, got 1"),
    ],
)
def test_numbers_that_no_file_holds_are_refused(change, said):
    text = BARE.replace("episodes = 3\n", "") if "episodes" in change else BARE
    assert said in refused(f"{change}\n{text}")


def test_overrides_come_after_the_file():
    plan = read_plan(
        VALID,
        [
            Override("episodes", "50", "--episodes"),
            Override("agents.omg.delta", "0.2", "--set"),
            Override("agents.new.kind", "greedy", "--set"),
            Override("agents.omg.oracles", "counts", "--set"),
        ],
    )
    assert plan.episodes == 50
    assert plan.agents[0].options == {"delta": 0.2, "oracles": "counts"}
    assert plan.agents[3].kind == "greedy"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("agents.omg.dellta", "1", "did you mean 'delta'?"),
        ("agents.omg.delta", "-1", "`delta`"),
        ("episodes.x", "1", "not a table"),
        ("agents..x", "1", "names with dots"),
        ("episodes", "many", "`episodes`"),
    ],
)
def test_overrides_that_are_wrong_are_named(path, value, said):
    message = refused(VALID, Override(path, value, f"--set {path}={value}"))
    assert f"--set {path}={value}" in message
    assert said in message


@pytest.mark.parametrize("name", presets())
def test_presets_are_described_plans(name):
    plan = load_plan(name)
    assert plan.name == name
    assert plan.description


def test_a_file_or_preset_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="did you mean 'demo'"):
        load_plan("dmeo")
    with pytest.raises(FileError, match="No such file"):
        load_plan(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match=r"bytes\.toml"):
        load_plan(str(tmp_path / "bytes.toml"))


def test_names_of_files_are_plain():
    assert slug("A  b/../c--d_e") == "a-b-c-d-e"


WORDS = (
    *("[", "]", "=", "{", "}", '"', "\n", ".", ",", "-1", "0", "1e999", "nan", "inf", "true", "''", "[[x]]", "kind"),
    *("9" * 30, "1979-05-27", "[1, [2]]", "{a = {}}", "greedy", "linear", "seed", "episodes = 2", "\x00", "é", "gamma"),
)


def mutated(text, draw):
    """Return `text` with a few random changes: characters, tokens or lines removed, doubled, swapped, put in."""
    for _ in range(draw.randint(1, 4)):
        pieces = draw.choice([list(text), text.split(" "), text.splitlines(keepends=True)])
        separator = " " if len(pieces) == len(text.split(" ")) else ""
        place, other = draw.randrange(len(pieces)), draw.randrange(len(pieces))
        change = draw.choice(["remove", "double", "swap", "insert", "replace"])
        if change == "remove" and len(pieces) > 1:
            del pieces[place]
        elif change == "double":
            pieces.insert(other, pieces[place])
        elif change == "swap":
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif change == "insert":
            pieces.insert(place, draw.choice(WORDS))
        else:
            pieces[place] = draw.choice(WORDS)
        text = separator.join(pieces)
    return text


def test_a_thousand_mutations_end_in_a_plan_or_in_one_error(seed):
    draw = random.Random(seed)
    plans = errors = 0
    for _ in range(1000):
        try:
            read_plan(mutated(VALID, draw), name="study")
            plans += 1
        except FileError:
            errors += 1
    assert plans > 10
    assert errors > 300
