//! Where the servers listen that `cargo xtask services up` has started.

use std::path::PathBuf;

/// The address of a service. `SUPERSTEP_NAME_URL` says another one.
///
/// # Panics
///
/// If it does not run, with what to do: a test that skipped it would prove nothing.
pub fn url(name: &str) -> String {
    let variable = format!("SUPERSTEP_{}_URL", name.to_uppercase().replace('-', "_"));
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(set("HOME")?).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let file = cache.map(|cache| cache.join(format!("superstep/services/{name}.url")));
    let told = std::env::var(&variable).ok();
    told.or_else(|| std::fs::read_to_string(file?).ok())
        .unwrap_or_else(|| {
            panic!(
                "this test needs {name}: run `cargo xtask services up {name}`, or set {variable}"
            )
        })
}
