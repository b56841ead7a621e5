//! Runs one bench or all of them, tells what they found, and keeps it.

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use super::findings::Findings;
use super::fixture::Fixture;
use super::lab::Lab;
use super::{
    BenchArgs, archie, chain, fanout, machine, open, page, parked, report, restate, resume, scale,
    server, threads, turns, weight,
};
use harness::workspace::root;
use harness::workspace::{commit, is_dirty};

pub(super) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    // The peers of a server are servers, and installed by its bench.
    let has_contests = args.name != "server";
    let bench = Bench {
        args,
        fixture: Fixture::new(args.quick)?,
        lab: Lab::new(args.quick, args.against_peers && has_contests)?,
    };
    let found = match args.name.as_str() {
        "all" => bench.all()?,
        "server" => vec![bench.one("server")?, bench.one("tenants")?],
        name => vec![bench.one(name)?],
    };
    for found in &found {
        report::publish(found, args.json);
    }
    match args.name.as_str() {
        "all" => bench.keep(&found, page::RESULTS)?,
        "restate" if !args.quick => bench.keep(&found, page::RESULTS_OF_RESTATE)?,
        "scale" if !args.quick => bench.keep(&found, page::RESULTS_OF_SCALE)?,
        "tenants" if !args.quick => bench.keep_next_to_others(&found, page::RESULTS_OF_SERVER)?,
        // Without the others there is less to keep than there was.
        "server" if !args.quick && args.against_peers => {
            bench.keep(&found, page::RESULTS_OF_SERVER)?;
        }
        _ => {}
    }
    match found.iter().map(Findings::missed).sum() {
        0 => Ok(()),
        missed => bail!("{missed} goals of the bench `{}` were missed", args.name),
    }
}

struct Bench<'a> {
    args: &'a BenchArgs,
    /// For what is measured in this process.
    fixture: Fixture,
    /// For what is measured in processes beside others.
    lab: Lab,
}

impl Bench<'_> {
    fn all(&self) -> anyhow::Result<Vec<Findings>> {
        let names = ["chain", "threads", "fanout", "resume", "loop", "parked"];
        names.into_iter().map(|name| self.one(name)).collect()
    }

    fn one(&self, name: &str) -> anyhow::Result<Findings> {
        let (fixture, lab) = (&self.fixture, &self.lab);
        match name {
            "chain" => chain::run(lab),
            "threads" => threads::run(lab),
            "fanout" => fanout::run(lab),
            "resume" => resume::run(lab),
            "restate" => restate::run(lab),
            "archie" => archie::run(lab),
            "scale" => scale::run(lab, fixture),
            "server" => server::run(lab, self.args),
            "tenants" => server::run_tenants(lab),
            "loop" => {
                let mut found = Findings::new("loop", lab.quick);
                found.rows = [turns::run(fixture)?, open::run(fixture)?].concat();
                if lab.has_peers() {
                    weight::of_a_loop(lab, &mut found)?;
                }
                Ok(found)
            }
            _ => {
                let mut found = Findings::new("parked", lab.quick);
                found.rows = parked::run(fixture)?;
                if lab.has_peers() {
                    weight::of_parked(lab, &mut found)?;
                }
                Ok(found)
            }
        }
    }

    /// In place of the figures before: the repository keeps the history.
    fn keep(&self, found: &[Findings], file: &str) -> anyhow::Result<()> {
        Self::write(&self.to_json(found)?, file)
    }

    /// In place of the figures of the same benches, and next to those of the others in the file. Each says at which commit it was
    /// measured, which is another one than that of the file.
    fn keep_next_to_others(&self, found: &[Findings], file: &str) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(root().join(file));
        let text = text.with_context(|| format!("{file} cannot be read"))?;
        let mut kept: Json = serde_json::from_str(&text)?;
        let benches = kept["benches"].as_array_mut();
        let benches = benches.with_context(|| format!("{file} has benches"))?;
        for found in found {
            let mut entry = found.to_json();
            entry["commit"] = json!(commit());
            entry["dirty"] = json!(is_dirty());
            benches.retain(|other| other["bench"] != found.bench);
            benches.push(entry);
        }
        Self::write(&kept, file)
    }

    fn write(figures: &Json, file: &str) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(figures)?;
        let path = root().join(file);
        std::fs::write(&path, text + "\n").with_context(|| format!("{file} cannot be written"))?;
        eprintln!("the figures are in {file}; `cargo xtask bench page` writes the page");
        Ok(())
    }

    fn to_json(&self, found: &[Findings]) -> anyhow::Result<Json> {
        Ok(json!({
            "commit": commit(),
            "dirty": is_dirty(),
            "quick": self.lab.quick,
            "machine": machine::described(self.lab.folder()),
            "versions": machine::versions(found)?,
            "benches": found.iter().map(Findings::to_json).collect::<Vec<_>>(),
        }))
    }
}
