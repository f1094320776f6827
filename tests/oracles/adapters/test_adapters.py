"""The adapters of scikit-learn, River and PyTorch, all six under the same checks, and what each does on its own."""

import math
import subprocess
import sys

import numpy as np
import pytest

from omg_cmdp.checks import check_oracle
from omg_cmdp.oracles import adapters
from omg_cmdp.oracles.adapters.ensemble import lessons

STATES, ACTIONS, HORIZON, DIMENSION = 3, 2, 4, 2
INPUTS = DIMENSION + STATES + ACTIONS
KINDS = ("Rewards", "Dynamics")


def sklearn_oracle(kind, **options):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import SGDRegressor
    from sklearn.neural_network import MLPClassifier

    if kind == "Rewards":
        return adapters.SklearnRewards(SGDRegressor(learning_rate="constant", eta0=0.03), **options)
    # Without a hidden layer: multinomial logistic regression.
    return adapters.SklearnDynamics(MLPClassifier(hidden_layer_sizes=(), learning_rate_init=0.03), **options)


def river_oracle(kind, **options):
    pytest.importorskip("river")
    from river import linear_model, optim

    model = linear_model.LinearRegression if kind == "Rewards" else linear_model.SoftmaxRegression
    return getattr(adapters, f"River{kind}")(model(optimizer=optim.SGD(0.05)), **options)


def torch_oracle(kind, optimizer=None, dropout=0.0, **options):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # two workers with all threads each would mostly wait for one another
    with torch.random.fork_rng():
        torch.manual_seed(0)
        outputs = 1 if kind == "Rewards" else STATES
        model = torch.nn.Sequential(
            torch.nn.Linear(INPUTS, 16), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(16, outputs)
        )
    optimizer = optimizer or (lambda parameters: torch.optim.Adam(parameters, lr=0.01))
    return getattr(adapters, f"Torch{kind}")(model, optimizer=optimizer, **options)


MAKERS = {"sklearn": sklearn_oracle, "river": river_oracle, "torch": torch_oracle}
every_adapter = pytest.mark.parametrize(
    ("package", "kind"),
    [
        pytest.param(package, kind, marks=pytest.mark.slow if package == "torch" else (), id=f"{package}-{kind}")
        for package in MAKERS
        for kind in KINDS
    ],
)


def build(package, kind, **options):
    return MAKERS[package](kind, **{"states": STATES, "actions": ACTIONS, "horizon": HORIZON, **options})


def truth(kind, context):
    """Return a table that is linear in the inputs; for dynamics, its softmax with a slope for each next state."""
    state, action = np.arange(STATES)[:, None], np.arange(ACTIONS)
    if kind == "Rewards":
        return 0.1 + 0.4 * context[0] + 0.15 * state + 0.2 * action
    scores = np.broadcast_arrays(4.0 * context[0] - 2.0 * state, 4.0 * action - 4.0, 4.0 * context[1] - 4.0)
    weights = np.exp(np.stack(scores, axis=-1))
    return weights / weights.sum(axis=-1, keepdims=True)


def episode(rng, kind, admissible=None, support=None):
    """Return a context and an episode of random admissible pairs, for `update`."""
    context = rng.random(DIMENSION)
    pairs = np.argwhere(np.ones((STATES, ACTIONS)) if admissible is None else admissible)
    states, actions = pairs[rng.integers(len(pairs), size=HORIZON)].T
    table = truth(kind, context)
    if kind == "Rewards":
        return context, states, actions, np.clip(table[states, actions] + 0.1 * rng.normal(size=HORIZON), 0.0, 1.0)
    table = table if support is None else table * support
    rows = table[states, actions].cumsum(axis=-1)
    return context, states, actions, (rng.random((HORIZON, 1)) * rows[:, -1:] > rows).sum(axis=-1)


def train(oracle, rng, kind, episodes, **masks):
    for _ in range(episodes):
        oracle.update(*episode(rng, kind, **masks))
    return oracle


def error(oracle, kind):
    """Return the mean squared error over a grid of contexts."""
    contexts = [np.array([x, y]) for x in (0.1, 0.5, 0.9) for y in (0.1, 0.5, 0.9)]
    return np.mean([(oracle.predict(context) - truth(kind, context)) ** 2 for context in contexts])


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def assert_valid(oracle, context):
    prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
    assert uncertainty.shape == (STATES, ACTIONS)
    assert np.isfinite(prediction).all()
    assert (prediction >= 0.0).all()
    if "Rewards" in type(oracle).__name__:
        assert prediction.shape == (STATES, ACTIONS)
        assert (prediction <= 1.0).all()
        assert ((uncertainty > 0.0) & (uncertainty <= 1.0)).all()
    else:
        assert prediction.shape == (STATES, ACTIONS, STATES)
        np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, atol=1e-12)
        assert (prediction >= 0.99 * oracle.forecasters.tables.floor).all()
        assert ((uncertainty > 0.0) & (uncertainty <= 2.0)).all()


@every_adapter
def test_the_contract_holds(package, kind, rng):
    check_oracle(build(package, kind), contexts=list(rng.random((3, DIMENSION))))


@every_adapter
@pytest.mark.parametrize("members", [1, 4])
def test_tables_are_valid_before_any_data_and_after(package, kind, members, rng):
    oracle = build(package, kind, members=members)
    context = rng.random(DIMENSION)
    assert_valid(oracle, context)
    rewards = kind == "Rewards"
    np.testing.assert_allclose(oracle.predict(context), 0.5 if rewards else 1.0 / STATES)
    np.testing.assert_allclose(oracle.uncertainty(context), 0.25 if rewards else 2.0 - 2.0 / math.sqrt(STATES))
    for _ in range(30):
        train(oracle, rng, kind, 1)
        assert_valid(oracle, context)
    assert oracle.loss > 0.0
    assert oracle.regret_bound(10, HORIZON) == math.inf


@every_adapter
def test_copies_that_have_learned_nothing_are_not_asked(package, kind, rng):
    oracle = build(package, kind, horizon=1)
    for _ in range(4):
        context, *arrays = episode(rng, kind)
        oracle.update(context, *(array[:1] for array in arrays))
        assert_valid(oracle, context)


@every_adapter
def test_asking_changes_nothing(package, kind, rng):
    oracle = train(build(package, kind), rng, kind, 5)
    before, context = oracle.state(), rng.random(DIMENSION)
    prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
    oracle.predict(rng.random(DIMENSION))
    np.testing.assert_array_equal(oracle.predict(context), prediction)
    np.testing.assert_array_equal(oracle.uncertainty(context), uncertainty)
    assert_same_state(oracle.state(), before)


@every_adapter
@pytest.mark.parametrize("members", [1, 3])
def test_masks_are_respected(package, kind, members, rng):
    admissible = np.array([[True, False], [True, True], [False, True]])
    support = np.ones((STATES, ACTIONS, STATES), dtype=bool)
    support[0, :, 2] = support[1, 0, 1:] = False

    def features(context):
        # Nothing is said of inadmissible pairs: a model that is asked about them would answer nan.
        inputs = np.full((STATES, ACTIONS, INPUTS), np.nan)
        inputs[admissible] = np.concatenate([np.tile(context, (4, 1)), np.eye(4, INPUTS - DIMENSION)], axis=1)
        return inputs

    options = {} if kind == "Rewards" else {"support": support}
    oracle = build(package, kind, admissible=admissible, features=features, members=members, **options)
    for episodes in (0, 30):
        train(oracle, rng, kind, episodes, admissible=admissible, support=support)
        context = rng.random(DIMENSION)
        prediction, uncertainty = oracle.predict(context), oracle.uncertainty(context)
        assert (uncertainty[~admissible] == 0.0).all()
        if kind == "Rewards":
            assert (prediction[~admissible] == 0.0).all()
            assert (uncertainty[admissible] > 0.0).all()
        else:
            np.testing.assert_allclose(prediction.sum(axis=-1), 1.0, atol=1e-12)
            np.testing.assert_allclose(
                prediction[~admissible], (support / support.sum(axis=-1, keepdims=True))[~admissible], rtol=1e-15
            )
            assert (prediction[~support] == 0.0).all()
            assert (prediction[support] >= 0.99 * oracle.forecasters.tables.floor).all()
            # Where only one next state is possible, nothing is uncertain.
            assert uncertainty[1, 0] == 0.0
            assert uncertainty[1, 1] > 0.0


@every_adapter
def test_errors_leave_the_state_unchanged(package, kind, rng):
    admissible = np.array([[True, True], [True, True], [True, False]])
    oracle = train(build(package, kind, admissible=admissible), rng, kind, 3, admissible=admissible)
    before = oracle.state()
    context, states, actions, outcomes = episode(rng, kind, admissible=admissible)
    for bad in (
        [0.5, np.nan],
        [0.5, np.inf],
        [0.5],
        [0.1, 0.2, 0.3],
        0.5,
        [[0.5, 0.5]],
        "patient",
        None,
        {},
        [[1], []],
    ):
        for ask in (oracle.predict, oracle.uncertainty, lambda c: oracle.update(c, states, actions, outcomes)):
            with pytest.raises(ValueError, match="`context`"):
                ask(bad)
    for arguments, name in (
        ((states[:-1], actions, outcomes), "states"),
        ((states, actions + ACTIONS, outcomes), "actions"),
        ((states, actions, outcomes - 2), "rewards" if kind == "Rewards" else "next_states"),
        ((np.full(HORIZON, 2), np.full(HORIZON, 1), outcomes), "`actions` must be admissible, got 1 in state 2"),
    ):
        with pytest.raises(ValueError, match=name):
            oracle.update(context, *arguments)
    for arguments in ((0, 1), (1, 0), (1.5, 1)):
        with pytest.raises(ValueError, match="must be an integer"):
            oracle.regret_bound(*arguments)
    assert_same_state(oracle.state(), before)
    oracle.update(context, states, actions, outcomes)


@every_adapter
def test_a_restored_oracle_continues_to_the_bit(package, kind, rng, tmp_path):
    for episodes in (0, 1, 20):
        oracle = train(build(package, kind), rng, kind, episodes)
        np.savez(tmp_path / "state.npz", **oracle.state())
        other = train(build(package, kind), rng, kind, 2)  # what it has learned gives way
        with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
            other.load_state(state)
        for _ in range(5):
            arrays = episode(rng, kind)
            oracle.update(*arrays)
            other.update(*arrays)
        context = rng.random(DIMENSION)
        np.testing.assert_array_equal(oracle.predict(context), other.predict(context))
        np.testing.assert_array_equal(oracle.uncertainty(context), other.uncertainty(context))
        assert oracle.loss == other.loss
        assert_same_state(oracle.state(), other.state())


@every_adapter
def test_a_foreign_state_is_refused_and_changes_nothing(package, kind, rng):
    oracle = train(build(package, kind), rng, kind, 3)
    before = oracle.state()
    more = train(build(package, kind), rng, kind, 4).state()
    learned = [name for name in more if name == "log" or "module" in name][-1]
    foreign = [
        build(package, kind, members=2).state(),
        build(package, kind, horizon=HORIZON + 1).state(),
        build(package, kind, states=STATES + 1).state(),
        build(package, "Dynamics" if kind == "Rewards" else "Rewards").state(),
        {name: array for name, array in more.items() if name != learned},
        {**more, learned: more[learned][..., :-1]},
        {},
    ]
    for state in foreign:
        with pytest.raises(ValueError, match="`state` must"):
            oracle.load_state(state)
        assert_same_state(oracle.state(), before)


@every_adapter
def test_error_and_uncertainty_fall_with_data(package, kind, rng):
    oracle, context = build(package, kind), np.full(DIMENSION, 0.5)
    errors, uncertainties = [], []
    for episodes in (0, 20, 400):
        train(oracle, rng, kind, episodes)
        errors.append(error(oracle, kind))
        uncertainties.append(oracle.uncertainty(context).mean())
    assert errors[2] < 0.25 * errors[0]
    assert uncertainties[0] > uncertainties[1] > uncertainties[2] > 0.0
    assert uncertainties[2] < 0.1 * uncertainties[0]


@every_adapter
def test_bad_arguments_are_refused_by_name(package, kind):
    for options in (
        {"states": 0},
        {"actions": 1.5},
        {"horizon": True},
        {"members": 0},
        {"features": [1.0]},
        {"admissible": np.ones((STATES, ACTIONS))},
        *(
            []
            if kind == "Rewards"
            else [{"floor": 0.0}, {"floor": 0.5}, {"support": np.ones((STATES, ACTIONS, 1), bool)}]
        ),
        *([{"passes": 0}] if package == "torch" else []),
    ):
        with pytest.raises(ValueError, match=f"`{next(iter(options))}` must"):
            build(package, kind, **options)
    with pytest.raises(ValueError, match="`model` must"):
        getattr(adapters, type(build(package, kind)).__name__)(
            *([object()]), **({"optimizer": None} if package == "torch" else {}), states=1, actions=1, horizon=1
        )


@every_adapter
def test_bad_features_are_refused_by_name(package, kind):
    answers = {"flat": np.zeros(3), "small": np.zeros((STATES, 1, 2)), "empty": np.zeros((STATES, ACTIONS, 0))}
    answers |= {"nan": np.full((STATES, ACTIONS, 2), np.nan), "text": "text"}
    oracle = build(package, kind, features=answers.get)
    for context in answers:
        with pytest.raises(ValueError, match="`features` must"):
            oracle.predict(context)


# Of the ensemble.


@pytest.mark.parametrize("members", [2, 4, 5, 8])
@pytest.mark.parametrize("period", [1, 4, 5, 8, 21, 64])
def test_every_copy_misses_its_share_of_every_step(members, period):
    """Of the examples at a step, or with one of several contexts in turn; i mod M would fail where M divides them."""
    missed = ~lessons(0, 1000 * period, members).reshape(members, 1000, period)
    assert (missed.sum(axis=0) == 1).all()
    assert np.abs(missed.mean(axis=1) * members - 1.0).max() < 0.5


def test_lessons_do_not_depend_on_how_episodes_cut_them():
    whole = lessons(0, 60, 4)
    np.testing.assert_array_equal(np.concatenate([lessons(7 * t, 7, 4) for t in range(8)], axis=1), whole[:, :56])
    # By this, each copy but the first has learned something after one example, and all after two.
    for members in range(2, 50):
        assert lessons(0, 1, members).any(axis=1).sum() == members - 1
        assert lessons(0, 2, members).any(axis=1).all()


def test_a_single_copy_learns_everything():
    assert lessons(5, 3, 1).tolist() == [[True, True, True]]


def test_importing_the_adapters_imports_no_foreign_package():
    """A fresh interpreter: each package waits for the first use of its adapters."""
    script = "import sys, omg_cmdp.oracles.adapters; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "omg_cmdp.oracles.adapters" in loaded
    assert {"sklearn", "river", "torch"}.isdisjoint(loaded)
    with pytest.raises(AttributeError, match="Nothing"):
        adapters.Nothing  # noqa: B018


@pytest.mark.parametrize("package", MAKERS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("omg_cmdp.oracles.adapters.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("", ".base", ".compose"):
        monkeypatch.setitem(sys.modules, f"{package}{module}", None)
    with pytest.raises(ImportError, match=rf"pip install 'omg-cmdp\[{package}\]'"):
        getattr(adapters, f"{package.title()}Rewards")


# Of scikit-learn.


def test_a_copy_that_gives_up_midway_is_undone(rng):
    linear_model = pytest.importorskip("sklearn.linear_model")

    class Moody(linear_model.SGDRegressor):
        def partial_fit(self, inputs, outcomes):
            if 1.0 in outcomes:
                raise OverflowError("diverged")
            return super().partial_fit(inputs, outcomes)

    shape = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON}
    oracle, undisturbed = adapters.SklearnRewards(Moody(), **shape), adapters.SklearnRewards(Moody(), **shape)
    for t in range(6):
        context, states, actions, _ = episode(rng, "Rewards")
        # The first copy does not see these examples, and has learned when the second gives up.
        unseen = ~lessons(t * HORIZON, HORIZON, oracle.forecasters.members)[0]
        if unseen.any():
            with pytest.raises(OverflowError, match="diverged"):
                oracle.update(context, states, actions, np.where(unseen, 1.0, 0.5))
        for each in (oracle, undisturbed):
            each.update(context, states, actions, np.full(HORIZON, 0.1 * t))
        np.testing.assert_array_equal(oracle.predict(context), undisturbed.predict(context))
    assert_same_state(oracle.state(), undisturbed.state())


def test_sklearn_models_are_copied_and_seeded():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPRegressor

    model, rng = MLPRegressor(hidden_layer_sizes=(8,)), np.random.default_rng(0)
    first, second = (adapters.SklearnRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON) for _ in range(2))
    for _ in range(3):
        arrays = episode(rng, "Rewards")
        first.update(*arrays)
        second.update(*arrays)
    np.testing.assert_array_equal(first.predict([0.5, 0.5]), second.predict([0.5, 0.5]))
    assert model.random_state is None
    assert not hasattr(model, "coefs_")
    with pytest.raises(ValueError, match="must have partial_fit and predict_proba"):
        adapters.SklearnDynamics(SGDClassifier(loss="hinge"), states=2, actions=1, horizon=1)


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        ([1e-6, 3e-6, 1.0], [0.25, 0.75, 0.0]),  # what it says, given that the third cannot happen
        ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0]),  # nothing about what can happen
        ([0.0, 1.0, 0.0], [0.01 / 1.01, 1.0 / 1.01, 0.0]),  # more than the floor allows
    ],
)
def test_answers_are_cut_to_the_support_and_the_floor(answer, row):
    base = pytest.importorskip("sklearn.base")

    class Stubborn(base.BaseEstimator):
        def partial_fit(self, inputs, outcomes, classes):
            return self

        def predict_proba(self, inputs):
            return np.tile(answer, (len(inputs), 1))

    support = np.broadcast_to([True, True, False], (3, 1, 3))
    oracle = adapters.SklearnDynamics(Stubborn(), states=3, actions=1, horizon=2, support=support, floor=0.01)
    oracle.update([0.0], [0, 1], [0, 0], [1, 1])
    np.testing.assert_allclose(oracle.predict([0.0]), np.broadcast_to(row, (3, 1, 3)), rtol=1e-12)


# Of River.


def test_river_pipelines_and_random_forests_are_replayed_to_the_bit(rng):
    pytest.importorskip("river")
    from river import forest, preprocessing

    def fresh():
        model = preprocessing.StandardScaler() | forest.ARFRegressor(n_models=3)
        return adapters.RiverRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON, members=2)

    oracle, other = train(fresh(), rng, "Rewards", 40), fresh()
    other.load_state(oracle.state())
    arrays = episode(rng, "Rewards")
    oracle.update(*arrays)
    other.update(*arrays)
    np.testing.assert_array_equal(oracle.predict(arrays[0]), other.predict(arrays[0]))


def test_a_binary_classifier_of_river_serves_two_states():
    pytest.importorskip("river")
    from river import linear_model

    oracle = adapters.RiverDynamics(linear_model.LogisticRegression(), states=2, actions=1, horizon=1)
    for _ in range(50):
        oracle.update([1.0], [0], [0], [1])
    assert oracle.predict([1.0])[0, 0, 1] > 0.6
    with pytest.raises(ValueError, match="`model` must be a River Regressor"):
        adapters.RiverRewards(linear_model.LogisticRegression(), states=2, actions=1, horizon=1)


def test_a_model_that_diverges_is_named(rng):
    pytest.importorskip("river")
    from river import linear_model, optim

    model = linear_model.LinearRegression(optimizer=optim.SGD(1e308))
    oracle = adapters.RiverRewards(model, states=STATES, actions=ACTIONS, horizon=HORIZON)
    with pytest.raises(ValueError, match="`model` must predict finite numbers"):
        train(oracle, rng, "Rewards", 30)


# Of PyTorch.


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "RMSprop", "NAdam", "ASGD", "Rprop"])
def test_optimisers_and_dropout_continue_to_the_bit(kind, name, rng, tmp_path):
    torch = pytest.importorskip("torch")
    extra = {"momentum": 0.9} if name == "SGD" else {}

    def fresh():
        return build(
            "torch", kind, optimizer=lambda p: getattr(torch.optim, name)(p, lr=0.01, **extra), dropout=0.5, passes=2
        )

    oracle, other = train(fresh(), rng, kind, 10), fresh()
    np.savez(tmp_path / "state.npz", **oracle.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        other.load_state(state)
    for _ in range(5):
        arrays = episode(rng, kind)
        oracle.update(*arrays)
        with torch.random.fork_rng():
            torch.manual_seed(5)  # others draw from torch's generator too: neither may disturb the other
            numbers = torch.random.get_rng_state()
            other.update(*arrays)
            np.testing.assert_array_equal(oracle.predict(arrays[0]), other.predict(arrays[0]))
            assert torch.equal(torch.random.get_rng_state(), numbers)
    assert_same_state(oracle.state(), other.state())
    with pytest.raises(ValueError, match="`state` must come from"):
        build("torch", kind).load_state(oracle.state())


@pytest.mark.slow
def test_buffers_are_restored_and_a_module_that_gives_up_is_undone(rng):
    torch = pytest.importorskip("torch")

    def fresh(horizon):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.BatchNorm1d(INPUTS), torch.nn.Linear(INPUTS, 1))
        shape = {"states": STATES, "actions": ACTIONS, "horizon": horizon, "members": 2}
        return adapters.TorchRewards(model, optimizer=lambda p: torch.optim.SGD(p, lr=0.1), **shape)

    oracle, other = fresh(8), fresh(8)
    for _ in range(3):
        oracle.update(rng.random(2), rng.integers(STATES, size=8), rng.integers(ACTIONS, size=8), rng.random(8))
    other.load_state(oracle.state())
    assert_same_state(oracle.state(), other.state())
    assert "member1/module/0.running_mean" in oracle.state()
    np.testing.assert_array_equal(oracle.predict([0.5, 0.5]), other.predict([0.5, 0.5]))
    # One example has no variance: the first copy sees none of a first episode of length 1, and the second gives up.
    short = fresh(1)
    before = short.state()
    with pytest.raises(ValueError, match="more than 1 value"):
        short.update([0.5, 0.5], [0], [0], [0.2])
    assert_same_state(short.state(), before)
