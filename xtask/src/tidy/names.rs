//! A file is named for its concern. A drawer for everything is not a concern.

use super::assert_tidy;
use super::files;

const REFUSED: &[&str] = &["utils.rs", "util.rs", "common.rs", "helpers.rs", "types.rs"];

fn fault_of(path: &str) -> Option<String> {
    let mut parts = path.rsplit('/');
    let file = parts.next()?;
    // `utils/mod.rs` is the same drawer.
    let name = if file == "mod.rs" {
        format!("{}.rs", parts.next()?)
    } else {
        file.to_owned()
    };
    REFUSED
        .contains(&name.as_str())
        .then(|| format!("{path}: name the file for its one concern"))
}

#[test]
fn no_file_is_a_drawer_for_everything() {
    assert_tidy(
        &files::all()
            .iter()
            .filter_map(|file| fault_of(&file.path))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn a_drawer_is_found() {
    assert!(fault_of("crates/a/src/utils.rs").is_some());
    assert!(fault_of("crates/a/src/common/mod.rs").is_some());
    assert!(fault_of("crates/a/src/pause.rs").is_none());
}
