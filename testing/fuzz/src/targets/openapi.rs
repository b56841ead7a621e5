//! OpenAPI documents, as JSON or YAML.

use std::collections::BTreeSet;

use archie_atris::openapi::read;

pub(super) fn run(bytes: &[u8]) {
    let Ok(document) = read(bytes) else {
        return;
    };
    assert_eq!(
        read(bytes).as_ref(),
        Ok(&document),
        "it is read in two ways"
    );
    assert!(!document.apis.is_empty() && document.apis.len() <= 5_000);
    assert!(document.title.chars().count() <= 121);
    let ids: BTreeSet<_> = document.apis.iter().map(|api| &api.id).collect();
    assert_eq!(ids.len(), document.apis.len(), "two calls have one id");
}
