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

fn messages() -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
    write(
        "Cargo.toml",
        "[package]\nname = \"talk\"\n[dependencies]\nserde = \"1.0\"\n",
    );
    write(
        "src/message.rs",
        "#[derive(Default)]\npub struct Message { pub text: String }\n\npub struct Sender;\n\n\
         impl Sender {\n    pub fn new(name: &str) -> Self { Sender }\n    pub fn send(&self, message: Message, times: u32) {}\n}\n\n\
         pub trait Speaks { fn speak(&self); }\n",
    );
    write(
        "src/lib.rs",
        "pub mod message;\nuse std::sync::Arc;\n\npub fn open(name: &str) -> Arc<Sender> { Arc::new(message::Sender::new(name)) }\n",
    );
    let tree = scan(folder.path(), &ScanOptions::default(), &Progress::default()).unwrap();
    (folder, tree)
}

#[test]
fn inventions_made_of_names_that_exist_are_misses() {
    let (_folder, tree) = messages();
    for (text, misses) in [
        ("`message::Message::new()`", "symbol message::Message::new"),
        (
            "`Arc::new(RwLock::new(HashMap::new()))`",
            "call RwLock::new 1, symbol HashMap::new",
        ),
        ("`open_all_models()`", "symbol open_all_models"),
        ("`Sender::send(message)`", "call Sender::send 1"),
        ("`open(a, b)`", "call open 2"),
        ("`Arc::clone()` of `Mutex`", "symbol Mutex"),
    ] {
        let checked = check(text, &tree);
        let found: Vec<String> = checked.misses.iter().map(Claim::to_string).collect();
        assert_eq!(found.join(", "), misses, "{text}: {checked:?}");
    }
}

#[test]
fn what_is_defined_or_used_under_its_path_holds() {
    let (_folder, tree) = messages();
    let text = "`message::Sender::new(name)`, `Sender::new`, `talk::message`, `crate::message::Message`, `Message.text`, \
        `Sender::send(message, 3)`, `sender.send(message, 3)` aside, `Sender::send(&sender, message, 3)`, `Arc::new(x)`, \
        `Speaks::speak()`, `pub fn open(name: &str) -> Arc<Sender>`.";
    let checked = check(text, &tree);
    assert_eq!(
        checked.misses,
        [Claim::Call {
            name: "sender.send".to_owned(),
            args: 2
        }]
    );
    assert_eq!(checked.unknown, []);
}

#[test]
fn what_may_come_from_elsewhere_is_unknown_and_does_not_count_as_held() {
    let (_folder, tree) = messages();
    let checked = check(
        "`Message::default()` and `serde::Serializer` and `Message`",
        &tree,
    );
    let unknown: Vec<String> = checked.unknown.iter().map(Claim::to_string).collect();
    assert_eq!(
        unknown,
        ["symbol Message::default", "symbol serde::Serializer"]
    );
    assert_eq!((checked.hits.len(), checked.misses.len()), (1, 0));
    assert_eq!(checked.percent(), 33);
    let (kept, dropped) = cleaned("It calls `Message::default()`.", &tree);
    assert_eq!(
        (kept.as_str(), dropped),
        ("It calls `Message::default()`.", 0)
    );
}

#[test]
fn arguments_are_counted_in_every_language() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
    write(
        "a.py",
        "def pay(cents, tip=0):\n    pass\n\nclass Till:\n    def shut(self, late): pass\n\ndef log(*lines): pass\n",
    );
    write(
        "b.ts",
        "export function buy(item: string, count?: number) {}\nexport const sell = (item: string, ...rest: string[]) => {};\n",
    );
    write(
        "c.go",
        "package c\n\nfunc Ship(a, b int, c string) {}\nfunc Log(format string, rest ...any) {}\n",
    );
    write(
        "D.java",
        "class D { void pack(int a, int b) {} void all(int... a) {} }\n",
    );
    let tree = scan(folder.path(), &ScanOptions::default(), &Progress::default()).unwrap();
    let right = "`pay(1)`, `pay(1, 2)`, `Till.shut(true)`, `log(1, 2, 3)`, `buy(x)`, `buy(x, 2)`, `sell(x, y, z)`, `Ship(1, 2, s)`, \
        `Log(f, 1, 2)`, `pack(1, 2)`, `all(1, 2, 3)`";
    assert_eq!(check(right, &tree).misses, []);
    let wrong = "`pay(1, 2, 3)`, `Till.shut(a, b, c)`, `buy(x, 2, 3)`, `Ship(1, 2)`, `pack(1)`";
    assert_eq!(
        check(wrong, &tree).misses.len(),
        5,
        "{:?}",
        check(wrong, &tree)
    );
}
