//! Every kept input, and every one that once broke a promise, keeps its promise now.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fuzz_targets::{TARGETS, campaign, corpus};

#[test]
fn every_kept_input_keeps_its_promise() {
    for target in TARGETS {
        let report = campaign::run(target, Duration::ZERO, 0).expect("the corpus is read");
        assert!(report.corpus > 0, "`{}` has no corpus", target.name);
        let broken: Vec<_> = report
            .crashes
            .iter()
            .map(|crash| (crash.name.as_deref(), crash.why.as_str()))
            .collect();
        assert!(broken.is_empty(), "`{}` breaks: {broken:?}", target.name);
    }
}

/// A folder that no target reads would be a corpus that nobody tries.
#[test]
fn every_folder_of_the_corpus_has_a_target_and_the_corpus_stays_small() {
    let folder = corpus::folder("");
    let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder).expect("there is a corpus") {
        let name = entry.expect("it is read").file_name();
        let name = name.to_string_lossy();
        assert!(names.contains(&*name), "no target reads corpus/{name}");
        let inputs = corpus::read(&name).expect("it is read");
        bytes += inputs.iter().map(|input| input.bytes.len()).sum::<usize>();
    }
    assert!(bytes <= 1 << 20, "the corpus has {bytes} bytes");
    let dictionaries = Path::new(env!("CARGO_MANIFEST_DIR")).join("dictionaries");
    for entry in std::fs::read_dir(dictionaries).expect("there are dictionaries") {
        let name = entry.expect("it is read").file_name();
        let name = name.to_string_lossy();
        let target = name.strip_suffix(".dict").expect("a dictionary");
        assert!(names.contains(target), "no target uses {name}");
        assert!(!corpus::words(target).expect("it is read").is_empty());
    }
}
