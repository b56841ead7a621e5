//! Agents read and write files of a person only through `user_folder`, and their own only through `private_file`.

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::{code_only, line_of, words};

/// Where the rule holds.
const PLACES: &[&str] = &[
    "agents/",
    "apps/archie/src/commands/analyze.rs",
    "apps/archie/src/commands/api.rs",
    "apps/archie/src/commands/atris/",
    "apps/archie/src/commands/docs.rs",
    "apps/archie/src/commands/mail/",
    "apps/archie/src/commands/sheet.rs",
];

/// Files that may, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "agents/archie-agent/src/user_folder/",
        "the one way to touch a person's folder",
    ),
    (
        "agents/archie-agent/src/private_file.rs",
        "the one way to touch files of our own",
    ),
    (
        "agents/docs/src/plan.rs",
        "a temporary folder of its own, filled through `user_folder`",
    ),
    (
        "agents/sheet/src/sandbox/bubblewrap.rs",
        "the sandbox's own temporary folder, and programs of the system",
    ),
    (
        "agents/sheet/src/sandbox/environment.rs",
        "makes a Python environment in Archie's own cache folder",
    ),
    (
        "agents/sheet/src/sandbox/mod.rs",
        "makes the sandbox's own temporary folder; what code left in it is read through `user_folder`",
    ),
    (
        "agents/sheet/src/sandbox/process.rs",
        "measures the sandbox's own temporary folder",
    ),
    (
        "agents/sheet/src/sandbox/unlinked.rs",
        "reads in `/proc` what the sandbox's own processes hold open",
    ),
    (
        "apps/archie/src/commands/atris/state_log.rs",
        "names the type of a log that `private_file` opened",
    ),
    (
        "apps/archie/src/commands/mail/schedule.rs",
        "deletes the units of its own timer, in the folder of systemd",
    ),
];

/// Words that have no other meaning than a file by its path.
const WORDS: &[&str] = &[
    "fs",
    "OpenOptions",
    "DirBuilder",
    "NamedTempFile",
    "TempDir",
    "tempfile",
    "canonicalize",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// Methods of a path that ask the file system; their names mean other things elsewhere.
const METHODS: &[&str] = &[
    ".exists()",
    ".is_file()",
    ".is_dir()",
    ".is_symlink()",
    ".metadata()",
];

fn faults_of(file: &File) -> Vec<String> {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let is_there = PLACES.iter().any(|place| file.path.starts_with(place));
    let is_allowed = ALLOWED
        .iter()
        .any(|(allowed, _)| file.path.starts_with(allowed));
    if !is_there || is_test || is_allowed || !file.is_rust() {
        return Vec::new();
    }
    let code = code_only(&file.text);
    // Tests of a module stand at its end.
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found: Vec<(usize, &str)> = words(code)
        .filter(|(place, word)| {
            let is_opened = *word == "File" && code[place + word.len()..].starts_with("::");
            is_opened || WORDS.contains(word)
        })
        .collect();
    for method in METHODS {
        found.extend(code.match_indices(method));
    }
    found.sort_unstable();
    let fault = |(place, what): (usize, &str)| {
        format!(
            "{}:{}: `{what}` reaches a file by its path; go through `user_folder` (or `private_file` for our own)",
            file.path,
            line_of(code, place)
        )
    };
    found.into_iter().map(fault).collect()
}

#[test]
fn agents_touch_files_in_one_way() {
    assert_tidy(&files::all().iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn what_is_allowed_is_there() {
    let all = files::all();
    for (path, _) in ALLOWED {
        assert!(
            all.iter().any(|file| file.path.starts_with(path)),
            "{path} is gone"
        );
    }
}

#[test]
fn a_file_that_is_opened_by_its_path_is_found() {
    let text = "use std::fs;\nfn a(path: &Path) { fs::read(path); tokio::fs::read(path); File::open(path); path.exists(); }\n\
                fn b() { Entry::File; metadata.scores(); }\n#[cfg(test)]\nmod tests { use std::fs; }\n";
    let faults = faults_of(&File::new("agents/x/src/nodes.rs", text));
    assert_eq!(faults.len(), 5, "{faults:?}");
    assert!(faults_of(&File::new("apps/archie/src/shell.rs", text)).is_empty());
}
