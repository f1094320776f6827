"""What something was made with is the package that runs, and not what happens to lie around it."""

import os
import subprocess
from importlib import metadata

import pytest

import omg_cmdp
from omg_cmdp.provenance import commit, provenance


def git(folder, *arguments):
    identity = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Return a repository with a package in it, and the commit."""
    return made(tmp_path / "project", "package")


def made(project, place):
    package = project / place
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "x")
    return package, git(project, "rev-parse", "HEAD")


def test_the_package_may_be_one_of_several_in_its_repository(tmp_path):
    package, head = made(tmp_path / "project", "library/package")
    assert commit(package) == head


def test_a_copy_deep_inside_another_project_does_not_count(tmp_path):
    package, _ = made(tmp_path / "project", "vendor/library/package")
    assert commit(package) == "unknown"


def test_the_commit_is_that_of_the_package(repository):
    package, head = repository
    assert commit(package) == head
    (package / "__init__.py").write_text("# changed")
    assert commit(package) == f"{head} (with uncommitted changes)"


def test_the_repository_is_only_looked_at(repository):
    """Not even its index is refreshed: a process that is killed meanwhile would leave a lock behind."""
    package, _ = repository
    os.utime(package / "__init__.py", (0, 0))  # a reason to refresh it
    index = package.parent / ".git" / "index"
    before = index.read_bytes(), index.stat().st_ino
    commit(package)
    assert (index.read_bytes(), index.stat().st_ino) == before


@pytest.mark.parametrize("place", [".venv/lib/site-packages/installed", "vendor/installed", "installed"])
def test_a_repository_around_the_package_does_not_count(place, repository):
    installed = repository[0].parent / place
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    assert commit(installed) == "unknown"


def test_nor_does_one_that_a_hook_of_git_speaks_of(repository, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "__init__.py").touch()
    monkeypatch.setenv("GIT_DIR", str(repository[0].parent / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert commit(tmp_path / "elsewhere") == "unknown"


def test_a_package_that_pip_made_from_a_repository_says_its_commit(tmp_path, monkeypatch):
    (tmp_path / "omg_cmdp").mkdir()
    information = tmp_path / "omg_cmdp-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: omg-cmdp\nVersion: 1\n")
    (information / "direct_url.json").write_text('{"url": "x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}')
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(information))
    assert commit(tmp_path / "omg_cmdp") == "abc"
    assert commit(tmp_path) == "unknown"  # another copy than the one that pip knows of


def test_the_version_is_that_of_the_package_that_runs(monkeypatch):
    monkeypatch.setattr(omg_cmdp, "__version__", "0.0.1+mine")
    provenance.cache_clear()
    try:
        made = provenance()
    finally:
        provenance.cache_clear()
    assert made["version"] == "0.0.1+mine"
    assert made["versions"]["numpy"] == metadata.version("numpy")
    assert os.sep not in made["commit"]
