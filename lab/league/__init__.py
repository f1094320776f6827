"""The league: agents on families of worlds, of which none that counts has chosen anything.

`families/` are generators of worlds, `entries.py` the agents with their constants, `play.py` the runs, `statistics.py`
what is concluded from them.
"""
