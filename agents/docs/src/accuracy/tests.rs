//! Claims of short texts about a small tree.

use super::super::scan::{Progress, ScanOptions, scan};
use super::*;

fn small() -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"shop\"\n[dependencies]\nserde = \"1.0\"\n",
    );
    write(
        "src/main.rs",
        "struct Cart;\nimpl Cart { fn add_item(&self) {} }\nfn main() {}\n",
    );
    write("src/shop/till.rs", "pub fn pay() {}\n");
    let tree = scan(folder.path(), &ScanOptions::default(), &Progress::default()).unwrap();
    (folder, tree)
}

fn misses(text: &str) -> Vec<String> {
    let (_folder, tree) = small();
    check(text, &tree)
        .misses
        .iter()
        .map(Claim::to_string)
        .collect()
}

#[test]
fn what_is_there_is_borne_out() {
    let text = "`src/main.rs` defines `Cart` and `Cart::add_item()`; `pay` is in `till.rs`. It needs `serde` 1.0. \
        There are 3 files in 2 directories, 2 Rust files, and 1 dependency. See src/shop/till.rs:1 and `Cargo.toml`.";
    let (_folder, tree) = small();
    let checked = check(text, &tree);
    assert_eq!(checked.misses, []);
    assert_eq!(
        (checked.hits.len(), checked.percent()),
        (13, 100),
        "{checked:?}"
    );
}

#[test]
fn what_is_not_there_is_a_miss_of_its_kind() {
    assert_eq!(misses("It begins in `src/nope.rs`."), ["path src/nope.rs"]);
    assert_eq!(misses("See docs/nope.md for more."), ["path docs/nope.md"]);
    assert_eq!(misses("`Basket` holds items."), ["symbol Basket"]);
    assert_eq!(misses("It needs `serde` 2.1."), ["version serde 2.1"]);
    assert_eq!(misses("There are 40 files."), ["count 40 files"]);
    assert_eq!(misses("It uses `tokio`."), ["symbol tokio"]);
}

#[test]
fn prose_that_claims_nothing_is_left_alone() {
    assert_eq!(
        misses(
            "Either/or, TCP/IP, 24/7: `cargo build` runs `--release` at https://example.org/a.html."
        ),
        [""; 0]
    );
}

#[test]
fn only_the_sentence_that_is_wrong_is_left_out() {
    let (_folder, tree) = small();
    let text = "`Cart` is the heart. It lives in `src/nope.rs`. Nothing else.\n\n- `pay` pays\n- `steal` steals\n";
    let (kept, dropped) = cleaned(text, &tree);
    assert_eq!(
        kept,
        "`Cart` is the heart. Nothing else.\n\n- `pay` pays\n\n"
    );
    assert_eq!(dropped, 2);
    assert_eq!(check(&kept, &tree).misses, []);
}

#[test]
fn a_claim_is_read_back_as_it_was_written() {
    let (_folder, tree) = small();
    let all = claims(
        "`Cart`, `src/main.rs`, `serde` 1.0, 3 files in `src`",
        &tree,
    );
    assert_eq!(all.len(), 6);
    for claim in all {
        assert_eq!(Claim::parse(&claim.to_string()), Some(claim));
    }
}
