"""Memory: what is free, control groups included; and oracles that are refused before they allocate."""

import tracemalloc

import pytest

from omg_cmdp import oracles
from omg_cmdp.oracles import memory

HUGE = {"states": 3000, "actions": 30, "horizon": 5}
WANTED = {
    "CountRewards": {"contexts": range(10_000)},
    "CountDynamics": {},
    "LinearRewards": {"dimension": 300},
    "SoftmaxDynamics": {"dimension": 50},
    "BasisDynamics": {"bases": 4},
}


@pytest.mark.parametrize("kind", WANTED)
def test_too_large_oracles_are_refused_before_anything_is_allocated(kind, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 4e9)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"would need \d+\.\d GB, more than a quarter of the 4.0 GB .*; \w+"):
        getattr(oracles, kind)(**HUGE, **WANTED[kind])
    assert tracemalloc.get_traced_memory()[1] < 5e8  # the mask of a table is one byte for each transition
    tracemalloc.stop()


def test_small_ones_are_made_wherever_they_are(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 0.0)
    oracles.SoftmaxDynamics(states=10, actions=4, dimension=10, horizon=5)


GROUPS = {
    "memory.max and memory.current": ("0::/box", "box/memory.max", "box/memory.current", "box/memory.stat"),
    "above": ("0::/box/inner", "box/memory.max", "box/memory.current", "box/memory.stat"),
    "seen as the root": ("0::/elsewhere", "memory.max", "memory.current", "memory.stat"),
}


@pytest.mark.parametrize("name", GROUPS)
def test_the_limit_of_a_control_group_counts(name, tmp_path):
    own, limit, usage, stat = GROUPS[name]
    files = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n", "proc/self/cgroup": f"{own}\n"}
    files |= {f"sys/fs/cgroup/{limit}": "3000000\n", f"sys/fs/cgroup/{usage}": "1000000\n"}
    files[f"sys/fs/cgroup/{stat}"] = "anon 400000\ninactive_file 500000\n"
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    assert memory.free_memory(tmp_path) == 2_500_000
    (tmp_path / f"sys/fs/cgroup/{limit}").write_text("max\n")
    assert memory.free_memory(tmp_path) == 8000 * 1024
