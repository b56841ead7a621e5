//! The helper of this workspace: `cargo xtask verify` is what CI runs and what a contributor runs.
//!
//! It owns the list of checks ([`steps`]), the tidy rules (ordinary tests in `tidy`), the files that a program writes, and the
//! command lines of `services`, `crash`, `bench` and `suites`, which are in `testing/`. It is built from no product crate, so
//! that it still builds, and says what is wrong, while one of them does not compile.

mod advisories;
mod bench;
mod book;
mod capacity;
mod cli_reference;
mod coverage;
mod deny;
mod deploy;
mod dist;
mod error_index;
mod fuzz;
mod http_reference;
mod markdown;
mod metadata;
mod package;
mod pictures;
mod programs;
mod prose;
mod results;
mod steps;
mod studio;
mod suites;
mod template;
#[cfg(test)]
mod tidy;
mod verify;
mod weight;

use std::ops::Range;
use std::process::ExitCode;

use lexopt::prelude::*;

const USAGE: &str = "\
The helper of this workspace.

usage: cargo xtask <command>

commands:
  verify [--long] [--from STEP | --only STEP...] [--seed N]
                                run every check that CI runs, stop at the first that fails
                                --long  also what does not fit CI, and put the results into results/verify-long.json
                                --from  begin at this step, to continue after one that failed
                                --only  run only these steps; the results of the others stay as they are
                                --seed  the seed of the randomised checks; default: taken from the commit
  crash NAME [--backend sqlite|postgres|cluster] [--trials N] [--seed N] [--mutant NAME] [--json]
                                break things on purpose and count what must never happen
        sim                     the simulator's programs, in simulated weather
        kill                    processes that are killed in the middle of their effects
        race                    processes that answer one question at once
        zombie                  a process that is frozen, replaced and thawed
        chain [--seconds N]     five that do whatever can be done to one thread, some killed
        restarts [--runs N] [--every MIN-MAX]
                                a PostgreSQL server of its own that goes away every MIN to MAX seconds
        recover [--runs N]      processes that recover N threads at once, some killed, while others are alive
        cluster                 random programs on three Restate nodes and two workers, all of them killed
        leaders                 questions that are answered while leaders move
        upgrade                 workers that are replaced by another version and back
        fanout                  wide supersteps on two workers, one of them killed
        server                  the server, killed and started again while clients use it in every way; on a cluster, two
                                servers and two workers
        streams                 streams of the server that are cut at random bytes and resumed
        outages [--runs N] [--every MIN-MAX]
                                the server while its PostgreSQL goes away every MIN to MAX seconds; on a cluster, while
                                its Redis does or is emptied
        slow [--seconds N | --minutes N]
                                a node of the server that runs for N seconds or minutes (default: 10 minutes)
  fuzz [TARGET...] [--seconds N] [--seed N] [--guided [--jobs N] [--record]] [--json]
                                run the fuzz targets of testing/fuzz from their corpus, each for N seconds (default: 2)
                                --guided  with coverage counters and libFuzzer (default: 60 seconds; builds for minutes)
                                --record  put what was found into results/fuzz.json
  deny [--offline] [--json]     check licences, sources and security advisories of all dependencies
                                --offline  use a snapshot of the advisories without trying the public database
  package [--json]              pack every crate that is published, and build each from what was packed
  dist [--check] [--program FILE] [--record] [--json]
                                build what is installed: one static program, and of it an archive, a package for Debian,
                                an image, a bill of materials and checksums; builds for many minutes
                                --check  build a second time elsewhere, compare, install everything in clean roots
                                --program  pack this program instead of building one
                                --record  put sizes and digests into results/dist.json
  deploy                        check what is in deploy/: alert rules with their unit tests, Kubernetes manifests
  capacity [--threads N] [--active SHARE] [--runs N] [--supersteps N] [--peak N] [--days N] [--json]
                                compute the servers, cores and disk that a load needs, from the figures in results/
  advisories --from PATH [--into FOLDER]
                                make a snapshot of the advisories from a clone of the RustSec database
  bench chain|loop|fanout|resume|parked|threads|restate|server|tenants|scale|archie|all [--against peers] [--quick] [--json]
                                measure in release, beside bare floors
                                --against peers  also beside other runtimes, installed if they are missing
                                archie  the program that people install: its size and its start
                                restate  workers on a Restate of their own, into results/bench-restate.json
                                server [--aegra PYTHON]
                                     the server over HTTP; next to peers, into results/bench-server.json
                                     --aegra  a Python 3.12 or newer, for Aegra to be among the peers
                                tenants  the server's tenants while one of them floods it, into the same file; two minutes
                                scale  lists, searches and answers among a million waiting threads, into results/bench-scale.json;
                                     an hour, and 10 GB of disk
                                all  every other one, into results/bench.json
  bench instructions|instructions-server [--json] [--record] [--strict]
                                count instructions under valgrind; more than 2 % over the committed figures is an error
                                --record  replace the committed figures
                                --strict  also an error: the committed figures are of another compiler
  bench page                    write docs/benchmarks.md and its plots from what is in results/
  weight [NAME...] [--record] [--json]
                                build example programs from scratch: crates and CPU seconds, for each set of dependencies
                                --record  put the figures into results/weight.json
  services up [NAME...] [--cluster]
                                start what tests need: postgres, redis, restate, mcp, sandbox, clients, google, mail, model,
                                embeddings
                                --cluster  also restate-cluster, which is three nodes
  services down [NAME...]       stop them, or all there are
  services status [--json]      list them and where they are
  services env                  print their addresses as lines that a shell takes in
  services drill                break a Restate cluster of its own, and say how long it takes to heal
  suites python [--only EXPR] [--backend sqlite|postgres] [--json]
                                run the integration suite of LangGraph's Python SDK against our server
                                --only     only tests that match an expression of pytest
                                --backend  what the server stores its data in (default: sqlite)
  studio build|check            the web page in studio/: build it into its crate, or check it
  studio browser [NAME...] [--long]
                                drive the page in a browser: what CI runs, or files of studio/e2e
                                --long  in full size, with figures into results/studio.json
  template                      do what `archie new` says, with the project that it makes
  book                          build the pages as a book with mdBook, follow every link of it, and search in it
  book --browser                the same, and open pages in Chromium, light and dark, wide and narrow; pictures stay
  book --commands ARCHIE [PAGE...]
                                run the commands of the pages with this program, and compare what they print
  cli-reference                 rewrite docs/cli.md from the help texts in apps/archie/tests/it/snapshots
  http-reference                rewrite docs/http-api.md from the OpenAPI document in studio/openapi.json
  prose [FILE...]               check spelling and grammar of pages, help texts and doc comments
  pictures [NAME...]            take the pictures of archie in docs/pictures again: all, or those with these names
  error-index                   rewrite docs/errors/README.md from the pages beside it
  coverage [--check]            write docs/coverage.md from docs/coverage.toml
                                --check  only compare the two, and look for the tests that are named
  help                          print this

exit status: 0 all is well, 1 a check failed, 2 the command line was not understood";

fn main() -> ExitCode {
    let command = match parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A command line, as typed.
#[derive(Debug, PartialEq)]
enum Command {
    Help,
    Verify {
        profile: steps::Profile,
        selection: verify::Selection,
        seed: Option<u64>,
    },
    Crash(crash_trials::CrashArgs),
    Fuzz(fuzz::FuzzArgs),
    Deny(deny::DenyArgs),
    Package {
        json: bool,
    },
    Deploy,
    Dist(dist::DistArgs),
    Capacity(capacity::CapacityArgs),
    Advisories(advisories::AdvisoriesArgs),
    Bench(bench::BenchArgs),
    Weight(weight::WeightArgs),
    Services(services::Action),
    Suites(suites::SuitesArgs),
    Studio(studio::StudioAction),
    Template,
    Book,
    BookInBrowser,
    BookCommands {
        archie: String,
        pages: Vec<String>,
    },
    CliReference,
    HttpReference,
    Prose(Vec<String>),
    Pictures(Vec<String>),
    ErrorIndex,
    Coverage {
        check: bool,
    },
}

fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let command = match parser.next()? {
        None => return Err("a command is needed".into()),
        Some(Long("help") | Short('h')) => return Ok(Command::Help),
        Some(Value(name)) => name.string()?,
        Some(other) => return Err(other.unexpected()),
    };
    match command.as_str() {
        "help" => Ok(Command::Help),
        "verify" => parse_verify(parser),
        "crash" => parse_crash(parser),
        "fuzz" => parse_fuzz(parser),
        "deny" => parse_deny(parser),
        "package" => parse_package(parser),
        "capacity" => parse_capacity(parser),
        "deploy" => parse_alone(parser, Command::Deploy),
        "advisories" => parse_advisories(parser),
        "dist" => parse_dist(parser),
        "bench" => parse_bench(parser),
        "weight" => parse_weight(parser),
        "services" => parse_services(parser),
        "suites" => parse_suites(parser),
        "studio" => parse_studio(parser),
        "template" => parse_alone(parser, Command::Template),
        "book" => parse_book(parser),
        "cli-reference" => parse_alone(parser, Command::CliReference),
        "http-reference" => parse_alone(parser, Command::HttpReference),
        "prose" => parse_names(parser, Command::Prose),
        "pictures" => parse_names(parser, Command::Pictures),
        "error-index" => parse_alone(parser, Command::ErrorIndex),
        "coverage" => parse_coverage(parser),
        unknown => Err(format!("there is no command `{unknown}`").into()),
    }
}

fn parse_studio(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("help") | Short('h')) => return Ok(Command::Help),
        Some(other) => return Err(other.unexpected()),
        None => return Err("use build, check or browser".into()),
    };
    match name.as_str() {
        "build" => parse_alone(parser, Command::Studio(studio::StudioAction::Build)),
        "check" => parse_alone(parser, Command::Studio(studio::StudioAction::Check)),
        "browser" => parse_browser_tests(parser),
        unknown => Err(format!("use build, check or browser, not `{unknown}`").into()),
    }
}

fn parse_browser_tests(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut tests = studio::BrowserTests::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) => tests.names.push(name.string()?),
            Long("long") => tests.is_long = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Studio(studio::StudioAction::Browser(tests)))
}

/// A command without arguments.
fn parse_alone(mut parser: lexopt::Parser, command: Command) -> Result<Command, lexopt::Error> {
    match parser.next()? {
        None => Ok(command),
        Some(Long("help") | Short('h')) => Ok(Command::Help),
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_verify(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut profile, mut seed) = (steps::Profile::Short, None);
    let (mut from, mut only) = (None, Vec::new());
    while let Some(arg) = parser.next()? {
        match arg {
            Long("long") => profile = steps::Profile::Long,
            Long("from") => from = Some(parser.value()?.string()?),
            Long("only") => {
                for name in parser.values()? {
                    only.push(name.string()?);
                }
            }
            Long("seed") => seed = Some(parser.value()?.parse()?),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let selection = match (from, only.is_empty()) {
        (None, true) => verify::Selection::All,
        (Some(from), true) => verify::Selection::From(from),
        (None, false) => verify::Selection::Only(only),
        (Some(_), false) => return Err("use `--from` or `--only`, not both".into()),
    };
    Ok(Command::Verify {
        profile,
        selection,
        seed,
    })
}

fn parse_crash(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = crash_trials::CrashArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if args.name.is_empty() => args.name = name.string()?,
            Long("backend") => args.backend = Some(parser.value()?.string()?),
            Long("trials") => args.trials = Some(parser.value()?.parse()?),
            Long("seconds") => args.seconds = Some(parser.value()?.parse()?),
            Long("minutes") => args.minutes = Some(parser.value()?.parse()?),
            Long("runs") => args.runs = Some(parser.value()?.parse()?),
            Long("every") => args.every = Some(parser.value()?.parse_with(parse_range)?),
            Long("seed") => args.seed = Some(parser.value()?.parse()?),
            Long("mutant") => args.mutant = Some(parser.value()?.string()?),
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    if args.name.is_empty() {
        return Err(format!("`crash` takes {}", crash_trials::NAMES).into());
    }
    Ok(Command::Crash(args))
}

fn parse_fuzz(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = fuzz::FuzzArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) => args.targets.push(name.string()?),
            Long("seconds") => args.seconds = Some(parser.value()?.parse()?),
            Long("seed") => args.seed = Some(parser.value()?.parse()?),
            Long("jobs") => args.jobs = Some(parser.value()?.parse()?),
            Long("guided") => args.guided = true,
            Long("record") => args.record = true,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Fuzz(args))
}

fn parse_deny(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = deny::DenyArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("offline") => args.offline = true,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Deny(args))
}

fn parse_capacity(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = capacity::CapacityArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("threads") => args.threads = parser.value()?.parse_with(capacity::number)?,
            Long("active") => args.active = parser.value()?.parse_with(capacity::number)?,
            Long("runs") => args.runs = parser.value()?.parse_with(capacity::number)?,
            Long("supersteps") => args.supersteps = parser.value()?.parse_with(capacity::number)?,
            Long("peak") => args.peak = parser.value()?.parse_with(capacity::number)?,
            Long("days") => args.days = parser.value()?.parse_with(capacity::number)?,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Capacity(args))
}

fn parse_package(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut json = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Package { json })
}

fn parse_coverage(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut check = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("check") => check = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Coverage { check })
}

fn parse_advisories(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = advisories::AdvisoriesArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("from") => args.from = parser.value()?.into(),
            Long("into") => args.into = Some(parser.value()?.into()),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    match args.from.as_os_str().is_empty() {
        true => Err("`advisories` needs `--from PATH`, a clone of the RustSec database".into()),
        false => Ok(Command::Advisories(args)),
    }
}

fn parse_dist(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = dist::DistArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("check") => args.check = true,
            Long("program") => args.program = Some(parser.value()?.string()?),
            Long("record") => args.record = true,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    if args.record && args.program.is_some() {
        return Err("`--record` is for the program that is built, not for `--program`".into());
    }
    Ok(Command::Dist(args))
}

fn parse_book(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut archie, mut pages) = (None, Vec::new());
    while let Some(arg) = parser.next()? {
        match arg {
            Long("browser") if archie.is_none() => {
                return parse_alone(parser, Command::BookInBrowser);
            }
            Long("commands") => archie = Some(parser.value()?.string()?),
            Value(page) if archie.is_some() => pages.push(page.string()?),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(match archie {
        Some(archie) => Command::BookCommands { archie, pages },
        None => Command::Book,
    })
}

/// A command with any number of names.
fn parse_names(
    mut parser: lexopt::Parser,
    command: fn(Vec<String>) -> Command,
) -> Result<Command, lexopt::Error> {
    let mut names = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) => names.push(name.string()?),
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(command(names))
}

/// `5-40`, the smaller number first.
fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text.split_once('-').ok_or("use MIN-MAX")?;
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is not a number"))
    };
    let (start, end) = (number(start)?, number(end)?);
    match start <= end {
        true => Ok(start..end),
        false => Err(format!("{start} is more than {end}")),
    }
}

fn parse_bench(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = bench::BenchArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if args.name.is_empty() => args.name = name.string()?,
            Long("quick") => args.quick = true,
            Long("against") => match parser.value()?.string()?.as_str() {
                "peers" => args.against_peers = true,
                unknown => return Err(format!("`--against` takes peers, not `{unknown}`").into()),
            },
            Long("aegra") => args.aegra = Some(parser.value()?.string()?),
            Long("record") => args.record = true,
            Long("strict") => args.strict = true,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    if args.name.is_empty() {
        return Err(format!("`bench` takes {}", bench::NAMES.join(", ")).into());
    }
    if args.aegra.is_some() && !(args.name == "server" && args.against_peers) {
        return Err("`--aegra` belongs to `bench server --against peers`".into());
    }
    Ok(Command::Bench(args))
}

fn parse_weight(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = weight::WeightArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) => args.names.push(parse_row(name.string()?)?),
            Long("record") => args.record = true,
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Weight(args))
}

fn parse_row(name: String) -> Result<String, String> {
    let names: Vec<&str> = weight::ROWS.iter().map(|row| row.name).collect();
    match names.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!(
            "there is no row `{name}`; there are {}",
            names.join(", ")
        )),
    }
}

fn parse_services(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    const ACTIONS: &str = "up, down, status, env or drill";
    let action = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("help") | Short('h')) => return Ok(Command::Help),
        Some(other) => return Err(other.unexpected()),
        None => return Err(format!("`services` takes {ACTIONS}").into()),
    };
    let (mut names, mut cluster, mut json) = (Vec::new(), false, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if matches!(action.as_str(), "up" | "down") => {
                names.push(parse_service(name.string()?)?);
            }
            Long("cluster") if action == "up" => cluster = true,
            Long("json") if action == "status" => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let all = || services::NAMES.iter().map(|name| (*name).to_owned());
    let action = match action.as_str() {
        "up" => {
            if names.is_empty() {
                names.extend(all().filter(|name| !services::ASKED_FOR.contains(&name.as_str())));
            }
            names.extend(cluster.then(|| services::CLUSTER.to_owned()));
            services::Action::Up(names)
        }
        "down" if names.is_empty() => services::Action::Down(all().collect()),
        "down" => services::Action::Down(names),
        "status" => services::Action::Status { json },
        "env" => services::Action::Env,
        "drill" => services::Action::Drill,
        unknown => return Err(format!("`services` takes {ACTIONS}, not `{unknown}`").into()),
    };
    Ok(Command::Services(action))
}

fn parse_service(name: String) -> Result<String, String> {
    match services::NAMES.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!(
            "there is no service `{name}`; there are {}",
            services::NAMES.join(", ")
        )),
    }
}

fn parse_suites(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = suites::SuitesArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if args.name.is_empty() => args.name = name.string()?,
            Long("only") => args.only = Some(parser.value()?.string()?),
            Long("backend") => {
                args.backend = parser.value()?.parse_with(suites::Backend::parse)?;
            }
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    match suites::NAMES.contains(&args.name.as_str()) {
        true => Ok(Command::Suites(args)),
        false => Err(format!("`suites` takes {}", suites::NAMES.join(", ")).into()),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Help => print_usage(),
        Command::Verify {
            profile,
            selection,
            seed,
        } => verify::run(profile, &selection, seed)?,
        Command::Crash(args) => crash_trials::run(&args)?,
        Command::Fuzz(args) => fuzz::run(&args)?,
        Command::Deny(args) => deny::run(&args)?,
        Command::Package { json } => package::run(json)?,
        Command::Capacity(args) => capacity::run(&args)?,
        Command::Deploy => deploy::run()?,
        Command::Dist(args) => dist::run(&args)?,
        Command::Advisories(args) => advisories::run(&args)?,
        Command::Bench(args) => bench::run(&args)?,
        Command::Weight(args) => weight::run(&args)?,
        Command::Services(action) => services::run(action)?,
        Command::Suites(args) => suites::run(&args)?,
        Command::Studio(action) => studio::run(action)?,
        Command::Template => template::run()?,
        Command::Book => book::run()?,
        Command::BookInBrowser => book::run_in_browser()?,
        Command::BookCommands { archie, pages } => book::commands::run(&archie, &pages)?,
        Command::CliReference => cli_reference::write()?,
        Command::HttpReference => http_reference::write()?,
        Command::Prose(files) => prose::run(&files)?,
        Command::Pictures(names) => pictures::run(&names)?,
        Command::ErrorIndex => error_index::write()?,
        Command::Coverage { check } => coverage::run(check)?,
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "help that was asked for is data")]
fn print_usage() {
    println!("{USAGE}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(
            parse_line("verify"),
            Ok(Command::Verify {
                profile: steps::Profile::Short,
                selection: verify::Selection::All,
                seed: None
            })
        );
        assert_eq!(
            parse_line("verify --long --from wasm --seed 7"),
            Ok(Command::Verify {
                profile: steps::Profile::Long,
                selection: verify::Selection::From("wasm".to_owned()),
                seed: Some(7)
            })
        );
        assert_eq!(
            parse_line("verify --only wasm deny --long --only=book"),
            Ok(Command::Verify {
                profile: steps::Profile::Long,
                selection: verify::Selection::Only(
                    ["wasm", "deny", "book"].map(str::to_owned).to_vec()
                ),
                seed: None
            })
        );
        assert_eq!(
            parse_line("studio browser networks truth --long"),
            Ok(Command::Studio(studio::StudioAction::Browser(
                studio::BrowserTests {
                    names: vec!["networks".to_owned(), "truth".to_owned()],
                    is_long: true,
                }
            )))
        );
        assert!(parse_line("studio check networks").is_err());
        assert_eq!(
            parse_line("bench chain --against peers"),
            Ok(Command::Bench(bench::BenchArgs {
                name: "chain".to_owned(),
                against_peers: true,
                ..bench::BenchArgs::default()
            }))
        );
        assert_eq!(
            parse_line("bench server --against peers --aegra python3.12 --json"),
            Ok(Command::Bench(bench::BenchArgs {
                name: "server".to_owned(),
                json: true,
                against_peers: true,
                aegra: Some("python3.12".to_owned()),
                ..bench::BenchArgs::default()
            }))
        );
        assert_eq!(parse_line("verify --help"), Ok(Command::Help));
        assert_eq!(
            parse_line("package --json"),
            Ok(Command::Package { json: true })
        );
        assert_eq!(
            parse_line("dist --check --json"),
            Ok(Command::Dist(dist::DistArgs {
                check: true,
                json: true,
                ..dist::DistArgs::default()
            }))
        );
        assert_eq!(
            parse_line("coverage --check"),
            Ok(Command::Coverage { check: true })
        );
        assert_eq!(
            parse_line("fuzz mail --seconds 600 --guided"),
            Ok(Command::Fuzz(fuzz::FuzzArgs {
                targets: vec!["mail".to_owned()],
                seconds: Some(600),
                guided: true,
                ..fuzz::FuzzArgs::default()
            }))
        );
        assert_eq!(
            parse_line("weight agents --record"),
            Ok(Command::Weight(weight::WeightArgs {
                names: vec!["agents".to_owned()],
                record: true,
                json: false
            }))
        );
        assert_eq!(
            parse_line("suites python --backend postgres --json"),
            Ok(Command::Suites(suites::SuitesArgs {
                name: "python".to_owned(),
                backend: suites::Backend::Postgres,
                json: true,
                ..suites::SuitesArgs::default()
            }))
        );
        let restarts = crash_trials::CrashArgs {
            name: "restarts".to_owned(),
            runs: Some(9),
            every: Some(1..3),
            ..Default::default()
        };
        assert_eq!(
            parse_line("crash restarts --runs 9 --every 1-3"),
            Ok(Command::Crash(restarts))
        );
        let slow = crash_trials::CrashArgs {
            name: "slow".to_owned(),
            minutes: Some(10),
            ..Default::default()
        };
        assert_eq!(
            parse_line("crash slow --minutes 10"),
            Ok(Command::Crash(slow))
        );
    }

    #[test]
    fn services_are_chosen_by_name() {
        let up = |names: &[&str]| services::Action::Up(owned(names));
        let down = |names: &[&str]| services::Action::Down(owned(names));
        for (line, action) in [
            ("up", up(&USUAL)),
            (
                "up --cluster",
                up(&[&USUAL[..], &["restate-cluster"]].concat()),
            ),
            ("up redis", up(&["redis"])),
            ("up redis --cluster", up(&["redis", "restate-cluster"])),
            ("down", down(services::NAMES)),
            ("down restate-cluster", down(&["restate-cluster"])),
            ("status", services::Action::Status { json: false }),
            ("status --json", services::Action::Status { json: true }),
            ("drill", services::Action::Drill),
        ] {
            let parsed = parse_line(&format!("services {line}"));
            assert_eq!(parsed, Ok(Command::Services(action)), "{line}");
        }
    }

    /// What comes unless one says what.
    const USUAL: [&str; 10] = [
        "postgres",
        "redis",
        "restate",
        "mcp",
        "sandbox",
        "clients",
        "google",
        "mail",
        "model",
        "embeddings",
    ];

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert_eq!(
            parse_line("verfy"),
            Err("there is no command `verfy`".to_owned())
        );
        for line in [
            "",
            "services",
            "services sideways",
            "services up now",
            "services down --cluster",
            "services up --json",
            "services status redis",
            "verify --fast",
            "verify --seed x",
            "verify --only",
            "verify --only wasm --from deny",
            "crash restarts --every 3-1",
            "bench",
            "bench chain --against everybody",
            "bench server --aegra python3.12",
            "error-index x",
            "advisories",
            "deny advisories",
            "fuzz --seconds soon",
            "weight everything",
            "dist now",
            "dist --record --program archie",
            "suites",
            "suites cobol",
            "suites python --backend cluster",
        ] {
            assert!(parse_line(line).is_err(), "{line:?} was taken");
        }
    }
}
