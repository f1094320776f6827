"""The tables of a log, what is asked of them, and the lock of its writer on a server."""

from __future__ import annotations

import sqlalchemy as sql

SCHEMA = sql.MetaData()
EVENTS = sql.Table(
    "events",
    SCHEMA,
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("time", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Column("key", sql.Text, unique=True),
    sql.Column("request", sql.Text),
    sql.Column("answer", sql.Text),
    sql.Column("hash", sql.Text, nullable=False),
)
SNAPSHOTS = sql.Table(
    "snapshots",
    SCHEMA,
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("content", sql.LargeBinary, nullable=False),
)


BY_KEYS = sql.select(EVENTS).where(EVENTS.c.key.in_(sql.bindparam("keys", expanding=True)))
_LATER = EVENTS.c.number > sql.bindparam("number")
AFTER = sql.select(EVENTS).where(_LATER).order_by(EVENTS.c.number).limit(sql.bindparam("most"))
HASH_OF = sql.select(EVENTS.c.hash).where(EVENTS.c.number == sql.bindparam("number"))
LAST_SNAPSHOT = sql.select(SNAPSHOTS).order_by(SNAPSHOTS.c.number.desc()).limit(1)


LOCK = "hashtext('omg-cmdp live')"
# A lock on a bigint has its halves in classid and objid; that of a negative number has all bits in the upper half.
HOLDS_LOCK = sql.text(
    f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()"
    f" AND (classid::bigint << 32 | objid::bigint) = {LOCK}::bigint"
)
