"""Compiled code against plain numpy versions of the same formulas."""

import types
from decimal import Decimal

import numba
import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.planning.problems import PROBLEMS, barrier_problem, combination_lock
from library.tests.random_mdps import by_step, random_mdp, random_mdps
from omg_cmdp.mdp import reachable_states
from omg_cmdp.planning import rounding
from omg_cmdp.planning.plan import _NO_ROWS
from omg_cmdp.planning.regularisers import regulariser
from omg_cmdp.planning.solver import blas, blocks, certify, program, safety_net, sparse, starts, terms, tuples
from omg_cmdp.planning.solver.program import Program


def for_python(module):
    """Return the functions of a module that only compiled code can call, each within one that Python can."""

    def wrapped(function):
        @numba.njit
        def call(*arguments):
            return function(*arguments)

        return call

    functions = {
        name: value for name, value in vars(module).items() if isinstance(value, numba.core.dispatcher.Dispatcher)
    }
    return types.SimpleNamespace(**(vars(module) | {name: wrapped(value) for name, value in functions.items()}))


blas, blocks, certify, program, safety_net, starts, terms, tuples = (
    for_python(module) for module in (blas, blocks, certify, program, safety_net, starts, terms, tuples)
)
hopeful_masses, make_dual, new_pair = program.hopeful_masses, program.make_dual, program.new_pair
gap_bound, gap_term, root_part = terms.gap_bound, terms.gap_term, terms.root_part

SIZES = [(5, 3, 4, False), (15, 2, 3, False), (16, 2, 3, False), (40, 3, 4, False), (40, 3, 4, True)]


def kernel_of(mdp, as_sparse=False):
    table, _, _, mask = mdp.raw
    rows = sparse.sparse_rows(table, mask) if as_sparse else _NO_ROWS
    flat = table.reshape(-1, mdp.states)
    return tuples.Transitions(flat, tuples.outer_products(flat), *rows[1:])


def tuples_of(mdp, kernel):
    table, _, _, mask = mdp.raw
    row = sparse.sparse_rows(table, mask)[0] if kernel.indptr.size else _NO_ROWS[0]
    return tuples.reachable_tuples(kernel, row, np.array(mdp.start), mask, mdp.horizon, 1e-30)


def flow_matrix(mdp, index):
    """Return B, dense: rows are (h, s), columns the tuples."""
    kernel = by_step(mdp)[0]
    columns = []
    for h in range(mdp.horizon):
        for node in range(index.layer[h], index.layer[h + 1]):
            for i in range(index.first[node], index.first[node + 1]):
                column = np.zeros((mdp.horizon, mdp.states))
                column[h, index.state[node]] = 1.0
                if h + 1 < mdp.horizon:
                    column[h + 1] = -kernel[h, index.state[node], index.action[i]]
                columns.append(column.ravel())
    return np.array(columns).T


def node_rows(mdp, index):
    """Return which rows of B belong to nodes."""
    nodes = np.zeros((mdp.horizon, mdp.states), dtype=bool)
    for h in range(mdp.horizon):
        nodes[h, index.state[index.layer[h] : index.layer[h + 1]]] = True
    return nodes


def test_the_tuples_are_the_reachable_and_admissible_ones(rng):
    for mdp in random_mdps(rng, 30):
        index = tuples_of(mdp, kernel_of(mdp))
        counted = reachable_states(mdp)[:, :, None] & mdp.admissible
        np.testing.assert_array_equal(node_rows(mdp, index), counted.any(axis=2))
        assert index.action.size == counted.sum()


@pytest.mark.parametrize("as_sparse", [False, True])
def test_flow_and_its_adjoint(as_sparse, rng):
    for mdp in random_mdps(rng, 20):
        kernel = kernel_of(mdp, as_sparse)
        index = tuples_of(mdp, kernel)
        matrix, nodes = flow_matrix(mdp, index), node_rows(mdp, index)
        weights, values = rng.standard_normal(matrix.shape[1]), rng.standard_normal((mdp.horizon, mdp.states))
        out, adjoint = np.empty(values.shape), np.empty(weights.size)
        blocks.flow(kernel, index, weights, out)
        blocks.flow_adjoint(kernel, index, values, adjoint)
        np.testing.assert_allclose(out[nodes], (matrix @ weights).reshape(out.shape)[nodes], atol=1e-12)
        np.testing.assert_allclose(adjoint, matrix.T @ values.ravel(), atol=1e-12)


@pytest.mark.parametrize(("states", "actions", "horizon", "as_sparse"), SIZES)
def test_the_block_factor_solves_the_newton_system(states, actions, horizon, as_sparse, rng):
    """All three engines, with weights over ten orders of magnitude."""
    for kind in ("dense", "sparse", "deterministic"):
        mdp = random_mdp(rng, states, actions, horizon, kernel=kind)
        kernel = kernel_of(mdp, as_sparse)
        index = tuples_of(mdp, kernel)
        matrix, nodes = flow_matrix(mdp, index)[node_rows(mdp, index).ravel()], node_rows(mdp, index)
        weights = 10.0 ** rng.uniform(-5, 5, matrix.shape[1])
        factor = blocks.allocate(kernel, index)
        assert blocks.factorise(kernel, index, weights, factor)
        solution = np.where(nodes, rng.standard_normal(nodes.shape), 0.0)
        right = np.zeros(nodes.shape)
        right[nodes] = (matrix * weights) @ (matrix.T @ solution[nodes])
        blocks.solve(index, factor, right)
        np.testing.assert_allclose(right, solution, rtol=1e-4, atol=1e-4)


def test_a_matrix_that_is_not_definite_is_noticed(rng):
    for states in (4, 20):
        mdp = random_mdp(rng, states, 2, 3, kernel="dense")
        kernel = kernel_of(mdp)
        index = tuples_of(mdp, kernel)
        factor = blocks.allocate(kernel, index)
        assert not blocks.factorise(kernel, index, np.full(index.action.size, -1.0), factor)


def test_blas_and_lapack_on_our_side_of_the_transpose(rng):
    sizes, rows = np.empty(2, np.int32), rng.standard_normal((7, 4))
    out = np.zeros((4, 4))
    blas.gram(rows, out, sizes)
    np.testing.assert_allclose(np.tril(out), np.tril(rows.T @ rows))
    blas.subtract_gram(0.5 * rows, out, sizes)
    np.testing.assert_allclose(np.tril(out), np.tril(0.75 * rows.T @ rows))
    matrix = np.tril(rows.T @ rows)
    expected = np.linalg.cholesky(rows.T @ rows)
    assert blas.cholesky(matrix, sizes)
    np.testing.assert_allclose(np.tril(matrix), expected)
    right = rng.standard_normal((4, 3))
    solved = right.copy()
    blas.solve_lower(matrix, solved, sizes)
    np.testing.assert_allclose(expected @ solved, right)
    assert not blas.cholesky(-np.eye(3), sizes)


def test_sparse_rows_merge_equal_rows_of_a_state(rng):
    mdp = random_mdp(rng, 6, 4, 3, kernel="sparse", kernel_steps=False, masked=False)
    table = mdp.transition_steps.copy()
    table[0, 2, 3] = table[0, 2, 1]
    row, indptr, indices, data = sparse.sparse_rows(table, np.ones((6, 4), np.uint8))
    assert row[0, 2, 3] == row[0, 2, 1]
    assert indptr.size - 1 == sum(len(np.unique(rows, axis=0)) for rows in table[0]) < 6 * 4
    for (_, s, a), r in np.ndenumerate(row):
        dense = np.zeros(6)
        dense[indices[indptr[r] : indptr[r + 1]]] = data[indptr[r] : indptr[r + 1]]
        np.testing.assert_array_equal(dense, table[0, s, a])


PARTS = {"barrier": (0.0, 1.0), "root": (1.0, 0.0), "both": (1.0, 1.0)}
"""Which of u and m are there."""


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_the_gap_of_a_tuple_is_zero_at_complementarity_and_below_its_bound(parts, rng):
    for u, m, q, z in 10.0 ** rng.uniform(-6, 2, (200, 4)) * [*parts, 1.0, 1.0]:
        wanted = root_part(u, q) + m
        assert 0.0 <= gap_term(u, m, q, z, 0.0) <= gap_bound(root_part(u, q), m, q * z) * (1 + 1e-9) + 1e-15
        assert gap_term(u, m, q, wanted / q, 0.0) == pytest.approx(0.0, abs=1e-12 * wanted)


def test_the_gap_of_a_tuple_far_from_its_optimum_is_rounded_up(rng):
    for x in (10.0 ** rng.uniform(-20, 3, 200)).tolist():
        found = gap_term(0.0, 1.0, 1.0, x, rounding.OF_TERM) * rounding.of_sum(1)
        assert Decimal(x) - 1 - Decimal(x).ln() <= Decimal(found)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_the_gap_of_a_tuple_bounds_those_of_the_program_and_of_the_barrier_with_its_weights(parts, rng):
    """The first is φ*(z) + z·q - φ(q), φ* from the best response; it is attained unless both parts are there."""
    for u, m, q, z in 10.0 ** rng.uniform(-4, 1, (200, 4)) * [*parts, 1.0, 1.0]:
        term, weight = gap_term(u, m, q, z, 0.0), root_part(u, q) + m
        exact = safety_net.best_response(u, m, 0.0, z)[1] + z * q - np.sqrt(u * q) - m * np.log(q)
        margin = 1e-10 * (1.0 + z * q + abs(exact))
        assert exact <= term + margin
        assert all(parts) or exact == pytest.approx(term, rel=1e-6, abs=margin)
        assert gap_term(0.0, weight, q, z, 0.0) <= term + margin


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_the_best_response_maximises_and_has_its_derivative(parts, rng):
    for u, m, theta, z in 10.0 ** rng.uniform(-4, 1, (50, 4)) * [*parts, 1.0, 1.0]:
        q, value, curvature = safety_net.best_response(u, m, theta, z)

        def objective(x, u=u, m=m, theta=theta, z=z):
            return np.sqrt(u * x) + (m + theta) * np.log(x) - z * x

        assert value == pytest.approx(objective(q), rel=1e-9, abs=1e-12)
        assert value >= max(objective(0.99 * q), objective(1.01 * q))
        step = 1e-5 * z
        slope = (
            safety_net.best_response(u, m, theta, z + step)[0] - safety_net.best_response(u, m, theta, z - step)[0]
        ) / (2 * step)
        assert -slope == pytest.approx(curvature, rel=1e-5)


def program_of(problem):
    roots, barrier, _ = regulariser(problem.mdp, problem.gamma, problem.weights, problem.uncertainty, problem.floor)
    kernel = kernel_of(problem.mdp)
    index = tuples_of(problem.mdp, kernel)
    terms = np.empty((3, index.action.size))
    for table, out in zip((problem.mdp.raw[1], roots, barrier), terms, strict=True):
        tuples.gather(index, table, out)
    return Program(kernel, index, np.array(problem.mdp.start), *terms)


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_starts_are_feasible(make, rng):
    for _ in range(30):
        problem = make(rng)
        program = program_of(problem)
        pair = new_pair(program)
        starts.cold_start(program, 1e-12, pair)
        matrix = flow_matrix(problem.mdp, program.tuples)
        flows = (matrix @ pair.q)[node_rows(problem.mdp, program.tuples).ravel()]
        nodes = program.tuples.layer[1]
        np.testing.assert_allclose(flows[:nodes], problem.mdp.start[program.tuples.state[:nodes]], atol=1e-12)
        np.testing.assert_allclose(flows[nodes:], 0.0, atol=1e-12)
        slack = matrix.T @ pair.values.ravel() - program.rewards
        np.testing.assert_allclose(pair.z, slack, rtol=1e-6, atol=1e-9)
        assert (pair.q > 0.0).all()
        assert (pair.z > 0.0).all()


def test_the_backward_dual_matches_the_masses(rng):
    """Σ_a products/z = mass in every node, after enough sweeps."""
    program = program_of(barrier_problem(rng, states=5, actions=4, horizon=6, kernel="dense"))
    pair, index = new_pair(program), program.tuples
    masses, products = rng.uniform(0.1, 1.0, index.state.size), rng.uniform(0.1, 1.0, index.action.size)
    make_dual(program, masses, products, 30, pair)
    np.testing.assert_allclose(np.add.reduceat(products / pair.z, index.first[:-1]), masses, rtol=1e-9)


def test_hopeful_masses_do_not_decay_along_a_lock():
    mdp = combination_lock(20, 5, 20)
    program = program_of(omg.Problem(mdp=mdp, gamma=1.0))
    masses = np.empty(program.tuples.state.size)
    hopeful_masses(program, masses, np.empty(20), np.empty((20, 20)))
    assert masses.min() >= 1 / 20 - 1e-12


@pytest.mark.parametrize("make", PROBLEMS)
def test_the_compiled_certificate_is_the_one_in_numpy(make, rng):
    for _ in range(30):
        problem = make(rng)
        solution = problem.plan()
        # At the optimum the terms are squares of rounding errors; an earlier iterate has digits to compare.
        values = solution.values * 1.001 + 1e-3 * np.arange(problem.mdp.horizon, 0, -1)[:, None]
        chosen = {name: getattr(problem, name) for name in ("gamma", "weights", "uncertainty", "floor")}
        roots, barrier, scale = regulariser(problem.mdp, **chosen)
        kernel, rewards, first, mask = problem.mdp.raw
        reached = reachable_states(problem.mdp).view(np.uint8)
        occupancy, gap = certify.certified(
            kernel, rewards, first, mask, reached, roots, barrier, solution.policy, values
        )
        expected = omg.certificate(problem.mdp, solution.policy, values, **chosen)
        assert gap * scale == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(occupancy, solution.occupancy, rtol=1e-12)


def test_values_without_positive_slacks_prove_nothing(rng):
    mdp = random_mdp(rng, 3, 2, 3)
    solution = omg.plan(mdp, gamma=10.0)
    assert omg.certificate(mdp, solution.policy, 0.0 * solution.values, gamma=10.0) == np.inf
