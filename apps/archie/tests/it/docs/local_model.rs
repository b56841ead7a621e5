//! The documentation with a real model on this machine: it proves the plumbing and the facts, not the prose.

use std::fs;

use serde_json::Value as Json;
use superstep_conformance::services;

use super::kit::repository;
use crate::kit::Workdir;

#[test]
fn the_documentation_works_with_a_small_real_model() {
    let workdir = Workdir::with_model("openai:smollm2-135m")
        .with_environment("OPENAI_BASE_URL", &services::url("model"));
    repository(&workdir.path(""));
    let ran = workdir.run(
        &[
            "docs",
            "repo",
            "--agents",
            "file-structure,dependency-analyzer",
            "--max-iterations",
            "1",
            "--source-tokens",
            "300",
            "--json",
        ],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{}", ran.err());
    let told: Json = serde_json::from_str(&ran.out()).unwrap();
    let results = told["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let metadata = &result["metadata"];
        assert!(metadata["iterations"].as_u64().unwrap() <= 1, "{metadata}");
        let is_scored = !metadata["scores"].as_array().unwrap().is_empty();
        let is_said = result["warnings"].to_string().contains("Unscored");
        assert!(is_scored || is_said, "{result}");
    }
    let page = |name: &str| fs::read_to_string(workdir.path("repo/.arch-docs").join(name)).unwrap();
    assert!(page("dependency-analyzer.md").contains("| `serde` | 1.0 | normal | 1 |"));
    let structure = page("file-structure.md");
    assert!(structure.starts_with("# File Structure\n"), "{structure}");
    let index = page("index.md");
    assert!(index.contains("(file-structure.md)"), "{index}");
    assert!(index.contains("6 files in 2 directories"), "{index}");
    assert!(index.contains("(dependency-analyzer.md)"), "{index}");
}
