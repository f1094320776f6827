"""What a trial promises, as a program of its own that shares no code with the service: histories are judged by it.

The log is the order in which calls are said to have happened. The model plays the calls in that order, and says where
an answer is not the one that follows, where the order contradicts the clocks of the callers, and what is missing.
"""

import datetime
import hashlib
import hmac
import json

REFUSED = {"open": (409, 410), "decide": (404, 409), "report": (404, 409), "close": (404, 409)}


def judge(attempts, rows, secret, idle):
    """Return what is wrong with a history: attempts at calls, and the rows of the log that is there at the end."""
    marks = {mark(secret, each.key): each for each in attempts}
    answered = [each for each in attempts if each.status == 200]
    numbers, trial, wrong = {}, Model(idle), []
    for number, time, kind, body, key, _, answer, _ in rows:
        call = marks.get(key)
        if call is None and key is not None and kind not in ("learning", "closed"):
            wrong.append(f"event {number} ({kind}): nobody has asked for it")
        elif key is not None:
            if call is not None:
                numbers[call.key] = number, answer
            fields = json.loads(body) if call is None else call.fields
            wrong += [f"event {number} ({kind}): {each}" for each in trial.play(kind, fields, json.loads(answer), time)]
    for each in answered:
        if numbers.get(each.key, (0, None))[1] != each.text:
            wrong.append(f"{each.name} {each.key} was answered, and the log has {numbers.get(each.key)}")
    known = sorted((each.ended, numbers[each.key][0]) for each in answered if each.key in numbers)
    first = {}
    for each in attempts:
        first.setdefault(each.key, each.begun)
    highest = place = 0
    for begun, key in sorted((begun, key) for key, begun in first.items() if key in numbers):
        while place < len(known) and known[place][0] < begun:
            highest, place = max(highest, known[place][1]), place + 1
        if numbers[key][0] < highest:
            wrong.append(f"{key} was asked for after event {highest} was answered, and is event {numbers[key][0]}")
    wrong += other_keys(attempts)
    odd = [each for each in attempts if each.status not in (None, 200, 503, *REFUSED.get(each.name, (404, 409, 410)))]
    return wrong + [f"{each.name} {each.key}: {each.status} {each.text}" for each in odd]


def other_keys(attempts):
    """Return openings that were made again with another key although nobody had answered them."""
    wrong, keys, answered = [], {}, set()
    for each in (each for each in attempts if each.name == "open"):
        known = keys.setdefault((each.fields["person"], each.fields["occasion"]), [])
        if each.key not in known:
            wrong += [f"{known[-1]} is made again as {each.key}" for _ in known[-1:] if known[-1] not in answered]
            known.append(each.key)
        if each.status not in (None, 503):
            answered.add(each.key)
    return wrong


def mark(secret, key):
    """Return the keyed hash under which the log has the key of a call."""
    return hmac.new(
        secret.encode(), json.dumps(["key", key], separators=(",", ":")).encode(), hashlib.sha256
    ).hexdigest()


class Model:
    """One episode for each occasion of a person, one action for each of its steps, with its table's probability."""

    def __init__(self, idle):
        self.idle, self.points, self.episodes, self.touched, self.gone = idle, {}, {}, {}, set()

    def play(self, kind, call, answer, time):
        """Play one call; yield what is wrong with its answer."""
        number = answer.get("episode")
        if kind == "opened":
            point = call["person"], call["occasion"]
            yield from ["the occasion was opened before"] * (point in self.points)
            yield from ["the person has left"] * (point[0] in self.gone)
            yield from ["another episode is under way"] * any(
                each["open"] for (person, _), each in self.points.items() if person == point[0]
            )
            self.points[point] = self.episodes[number] = {
                "open": True,
                "table": answer["policy"],
                "steps": {},
                **answer,
            }
        elif kind in ("withdrawn", "erased"):
            self.gone.add(call["person"])
            for (person, _), each in self.points.items():
                each["open"] = each["open"] and person != call["person"]
        elif number is not None:
            episode = self.episodes.get(number)
            if episode is None:
                yield f"there is no episode {number}"
                return
            yield from self._continue(kind, call, answer, time, episode)
        self.touched[number] = time

    def _continue(self, kind, call, answer, time, episode):
        if kind == "reopened" and (answer["policy"], answer["drawn"]) != (episode["table"], episode["drawn"]):
            yield "the occasion was opened with another table"
        if kind in ("reopened", "decided", "repeated", "closed") and not episode["open"]:
            yield "the episode is closed"
        if kind == "closed":
            episode["open"] = False
            if call.get("cause") == "overdue" and hours(self.touched[answer["episode"]], time) < self.idle:
                yield "it was closed as overdue, and was not"
        if kind in ("decided", "repeated"):
            step, state = call["step"], episode["states"].index(call["state"])
            made = answer["action"], answer["probability"]
            if episode["steps"].setdefault(step, made) != made or (kind == "decided") == (
                step in episode.get("done", ())
            ):
                yield f"step {step} was decided as {episode['steps'][step]}, and now as {made}"
            episode.setdefault("done", set()).add(step)
            if made != (
                episode["drawn"][step][state],
                episode["table"][step][state][episode["actions"].index(made[0])],
            ):
                yield f"step {step}: {made} is not what the table of the episode says"


def hours(earlier, later):
    """Return the hours between two times."""
    parse = datetime.datetime.fromisoformat
    return (parse(later) - parse(earlier)).total_seconds() / 3600.0
