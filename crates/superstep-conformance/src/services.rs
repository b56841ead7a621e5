//! Where the servers listen that `cargo xtask services up` has started.

use std::path::PathBuf;

use serde_json::Value as Json;

/// The address of a service. `SUPERSTEP_NAME_URL` says another one.
///
/// # Panics
///
/// If it does not run, with what to do: a test that skipped it would prove nothing.
pub fn url(name: &str) -> String {
    find(name, "URL", || {
        std::fs::read_to_string(file(name, "url")?).ok()
    })
}

/// The program of a service, for a test that starts one of its own. `SUPERSTEP_NAME_PROGRAM` says another one.
///
/// # Panics
///
/// If it is not installed, with what to do.
pub fn program(name: &str) -> String {
    find(name, "PROGRAM", || {
        let program = told(name, "program")?;
        std::fs::exists(&program).ok()?.then_some(program)
    })
}

/// What is told of the first node of a service under this name, such as `ingress`. `SUPERSTEP_NAME_WHAT` says something else.
///
/// # Panics
///
/// If it does not run, with what to do.
pub fn address(name: &str, what: &str) -> String {
    find(name, &what.to_uppercase(), || told(name, what))
}

fn told(name: &str, what: &str) -> Option<String> {
    let told = std::fs::read_to_string(file(name, "json")?).ok()?;
    let told: Json = serde_json::from_str(&told).ok()?;
    Some(told["nodes"][0][what].as_str()?.to_owned())
}

fn find(name: &str, what: &str, look: impl FnOnce() -> Option<String>) -> String {
    let service = name.to_uppercase().replace('-', "_");
    let variable = format!("SUPERSTEP_{service}_{what}");
    let told = std::env::var(&variable).ok();
    told.or_else(look).unwrap_or_else(|| {
        panic!("this test needs {name}: run `cargo xtask services up {name}`, or set {variable}")
    })
}

/// What is told of a service.
fn file(name: &str, kind: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(set("HOME")?).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(cache.join(format!("superstep/services/{name}.{kind}")))
}
