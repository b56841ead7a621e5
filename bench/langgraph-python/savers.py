"""Savers over fresh databases, opened as LangGraph's documentation shows."""

import contextlib
import os
import uuid

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Unkept:
    """No checkpointer at all."""

    saver = None


class Sqlite:
    def __init__(self, saver, path):
        self.saver, self.path = saver, path

    def bytes(self):
        self.saver.conn.commit()
        self.saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return os.path.getsize(self.path)


class Postgres:
    def __init__(self, saver):
        self.saver = saver

    def bytes(self):
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        return int(ask(f"SELECT {sizes}"))


@contextlib.contextmanager
def fresh(store):
    """What a round keeps its threads in; it goes with the round."""
    if store == "none":
        yield Unkept()
    elif store == "sqlite":
        path = os.path.join(os.environ["BENCH_FOLDER"], f"langgraph-python-{uuid.uuid4().hex}.db")
        with SqliteSaver.from_conn_string(path) as saver:
            saver.setup()
            yield Sqlite(saver, path)
        for ending in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path + ending)
    else:
        with PostgresSaver.from_conn_string(address()) as saver:
            saver.setup()
            clear()
            yield Postgres(saver)


def clear():
    ask("TRUNCATE " + ", ".join(TABLES))


def ask(query):
    with psycopg.connect(address(), autocommit=True) as connection:
        found = connection.execute(query)
        return found.fetchone()[0] if found.description else None


def address():
    return os.environ["BENCH_POSTGRES"]
