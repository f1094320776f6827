"""Episodes that were played and not yet learned from: their feedback is under way."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.delays import Delay
from omg_cmdp.fingerprints import setting
from omg_cmdp.logs.lines import episode_of_record, episode_record
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.persistence import State, check_settings, read_state
from omg_cmdp.validation import UNEXPECTED, whole_number


class Pending:
    """Feedback under way, ordered by the episode after which it is due, and then by when it was played."""

    def __init__(self, delay: Delay, generator: np.random.Generator) -> None:
        self.delay = delay
        self._generator = generator
        self._waiting: list[tuple[int, int, Episode]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, number: int, episode: Episode) -> int:
        """Add the feedback of episode `number`, and return how many episodes later it will arrive."""
        late = whole_number("delay", self.delay.late(number, self._generator))
        heapq.heappush(self._waiting, (number + late, number, episode))
        return late

    def arrived(self, now: int) -> Iterator[tuple[int, Episode]]:
        """Yield the number and the episode of what is due after episode `now`, and forget it."""
        while self._waiting and self._waiting[0][0] <= now:
            _, number, episode = heapq.heappop(self._waiting)
            yield number, episode

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything, for a checkpoint: a text for each episode, and the stream of the delays."""
        texts = [_text(*each) for each in sorted(self._waiting)]
        return {
            "settings": np.array(f"delay {setting(self.delay)}"),
            "waiting": np.array(texts, dtype=np.str_),
            "stream": stream_text(self._generator),
        }

    def load_state(self, state: State) -> None:
        """Load what `state` returned."""
        arrays = read_state(state)
        check_settings(arrays, f"delay {setting(self.delay)}")
        try:
            generator = read_stream(arrays["stream"])
            found = [_read(text) for text in arrays["waiting"].tolist()]
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`state` must be that of episodes under way, got {error!r}") from error
        self._waiting, self._generator = sorted(found), generator


def _text(due: int, number: int, episode: Episode) -> str:
    return json.dumps({"due": due, "number": number, **episode_record(episode)})


def _read(text: str) -> tuple[int, int, Episode]:
    """Return what `_text` was made of; floats are the same bit for bit."""
    found = json.loads(text)
    return int(found.pop("due")), int(found.pop("number")), episode_of_record(found)


def stream_text(generator: np.random.Generator) -> NDArray[Any]:
    """Return the state of a generator as text."""
    return np.array(json.dumps(generator.bit_generator.state))


def read_stream(text: NDArray[Any]) -> np.random.Generator:
    """Return the generator in the state that `text` tells."""
    generator = np.random.default_rng(0)
    try:
        generator.bit_generator.state = json.loads(str(text))
    except (*UNEXPECTED, ValueError) as error:
        raise ValueError(f"the state of a random stream must be as it was saved, got {error!r:.100}") from None
    return generator
