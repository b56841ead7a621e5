// Savers over fresh databases, opened as the documentation of LangGraph.js shows.
import { randomUUID } from "node:crypto";
import { rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const pg = createRequire(import.meta.url)("pg");
const TABLES = ["checkpoints", "checkpoint_blobs", "checkpoint_writes"];
const CONNECTIONS = 16;

/** What a round keeps its threads in; it goes with the round. */
export async function fresh(store, atOnce) {
  if (store === "none") return { saver: undefined, close() {} };
  return store === "sqlite" ? sqlite() : postgres(atOnce);
}

function sqlite() {
  const path = join(process.env.BENCH_FOLDER, `langgraph-js-${randomUUID()}.db`);
  const saver = SqliteSaver.fromConnString(path);
  saver.setup();
  const bytes = () => {
    saver.db.pragma("wal_checkpoint(TRUNCATE)");
    return statSync(path).size;
  };
  const close = () => {
    saver.db.close();
    for (const ending of ["", "-wal", "-shm"]) rmSync(path + ending, { force: true });
  };
  return { saver, bytes, close };
}

async function postgres(atOnce) {
  const connectionString = process.env.BENCH_POSTGRES;
  const pool = new pg.Pool({ connectionString, max: CONNECTIONS });
  const saver = atOnce > 1 ? new PostgresSaver(pool) : PostgresSaver.fromConnString(connectionString);
  await saver.setup();
  await pool.query(`TRUNCATE ${TABLES.join(", ")}`);
  const sizes = TABLES.map((table) => `pg_total_relation_size('${table}')`).join(" + ");
  const bytes = async () => Number((await pool.query(`SELECT ${sizes} AS bytes`)).rows[0].bytes);
  const close = async () => {
    await saver.end();
    if (!pool.ended) await pool.end();
  };
  return { saver, bytes, close };
}
