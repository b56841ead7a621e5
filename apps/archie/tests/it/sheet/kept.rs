//! Kept workbooks and files: one that was changed since it was written is an error that says what to do, and is never used.

use std::fs;
use std::path::{Path, PathBuf};

use archie_sheet::book::{read, snapshot_id};
use archie_sheet::snapshots::{SnapshotError, SnapshotStore};
use serde_json::json;
use superstep::ThreadId;

use super::acceptance::with_sales;
use super::kit::{code, sales, says};

fn thread() -> ThreadId {
    ThreadId::new("t1").unwrap()
}

/// Flips one bit of a file.
fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 1 << (at % 8);
    fs::write(file, bytes).unwrap();
}

fn assert_damaged<T: std::fmt::Debug>(read: Result<T, SnapshotError>, file: &Path) {
    let error = read.unwrap_err();
    assert!(matches!(error, SnapshotError::Damaged { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&file.display().to_string()), "{text}");
    assert!(text.contains("restore it from a backup"), "{text}");
}

#[test]
fn every_flipped_byte_of_a_workbook_and_of_its_checksum_is_found() {
    let home = tempfile::tempdir().unwrap();
    let snapshots = SnapshotStore::under(home.path());
    let id = snapshots.put_book(&thread(), &sales()).unwrap();
    let folder = snapshots.folder_of(&thread());
    let book = folder.join(format!("{id}.xlsx"));
    for name in ["xlsx", "sum"] {
        let file = folder.join(format!("{id}.{name}"));
        for at in 0..fs::metadata(&file).unwrap().len() as usize {
            flip(&file, at);
            assert_damaged(snapshots.book(&thread(), &id), &book);
            assert_damaged(snapshots.read(&thread(), &id), &book);
            flip(&file, at);
        }
    }
    assert_eq!(snapshots.book(&thread(), &id).unwrap(), sales());
    // Whatever is cut off or put in its place, too.
    fs::write(&book, &sales()[..100]).unwrap();
    assert_damaged(snapshots.book(&thread(), &id), &book);
    // The same workbook, kept again, is whole again.
    snapshots.put_book(&thread(), &sales()).unwrap();
    assert_eq!(snapshots.book(&thread(), &id).unwrap(), sales());
}

#[test]
fn a_workbook_without_a_checksum_is_read_only_if_it_says_the_same() {
    let home = tempfile::tempdir().unwrap();
    let snapshots = SnapshotStore::under(home.path());
    let id = snapshots.put_book(&thread(), &sales()).unwrap();
    let folder = snapshots.folder_of(&thread());
    // As older versions left it.
    fs::remove_file(folder.join(format!("{id}.sum"))).unwrap();
    assert_eq!(snapshots.book(&thread(), &id).unwrap(), sales());
    let book = folder.join(format!("{id}.xlsx"));
    let mut damaged = 0;
    for at in 0..sales().len() {
        flip(&book, at);
        match snapshots.book(&thread(), &id) {
            Ok(bytes) => {
                assert_eq!(snapshot_id(&bytes).unwrap(), id);
                assert_eq!(read(&bytes).unwrap(), read(&sales()).unwrap());
            }
            Err(error) => {
                assert!(matches!(error, SnapshotError::Damaged { .. }), "{error:?}");
                damaged += 1;
            }
        }
        flip(&book, at);
    }
    assert!(damaged > sales().len() / 2, "{damaged}");
}

#[test]
fn every_flipped_byte_of_another_file_is_found() {
    let home = tempfile::tempdir().unwrap();
    let snapshots = SnapshotStore::under(home.path());
    let bytes = b"[[\"Sales\",1,2,3]]";
    let name = snapshots.put_file(&thread(), "json", bytes).unwrap();
    let file = snapshots.folder_of(&thread()).join(&name);
    for at in 0..bytes.len() {
        flip(&file, at);
        assert_damaged(snapshots.file(&thread(), &name), &file);
        flip(&file, at);
    }
    flip(&file, 0);
    assert_eq!(snapshots.put_file(&thread(), "json", bytes).unwrap(), name);
    assert_eq!(snapshots.file(&thread(), &name).unwrap(), bytes);
}

#[test]
fn a_result_that_was_damaged_before_it_was_accepted_is_not_saved() {
    let workdir = with_sales(&json!([
        code("workbook['Sales']['C1'] = 'Total'"),
        says("Finish: added")
    ]));
    let ran = workdir.run(
        &[
            "sheet",
            "sales.xlsx",
            "--instruction",
            "Add a column",
            "--output-dir",
            "out",
        ],
        "",
    );
    let id = workdir.items().remove(0);
    let shown = workdir.run(&["inbox", &id], "");
    assert!(shown.out().contains("Sales!C1"), "{ran:?} {shown:?}");
    let folder = workdir.path("home/sheets").join(workdir.thread());
    let books = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let books: Vec<PathBuf> = books
        .filter(|file| file.extension().is_some_and(|end| end == "xlsx"))
        .collect();
    assert!(books.len() >= 2, "{books:?}");
    for book in &books {
        flip(book, 40);
    }
    let accepted = workdir.run(&["inbox", &id, "accept"], "");
    assert_eq!(accepted.code(), Some(1), "{accepted:?}");
    let said = accepted.err() + &accepted.out();
    assert!(
        said.contains("is damaged") && said.contains("restore it from a backup"),
        "{said}"
    );
    let resumed = workdir.run(&["resume", &workdir.thread()], "");
    assert_ne!(resumed.code(), Some(0), "{resumed:?}");
    assert!(!workdir.path("out/workbook_new.xlsx").exists());
}
