//! `.arch-docs/manifest.json`, which comes with a repository.

use archie_docs::manifest::{Manifest, NewPage};

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    let Ok(manifest) = serde_json::from_str::<Manifest>(text) else {
        return;
    };
    let written = serde_json::to_string(&manifest).expect("a manifest is written");
    let read: Manifest = serde_json::from_str(&written).expect("what was written is read");
    // Numbers that JSON cannot hold are written as nothing, so only a second pass must stay the same.
    let again = serde_json::to_string(&read).expect("a manifest is written");
    assert_eq!(written, again, "it is another one when it is read again");
    for (agent, made) in &manifest.agents {
        let times = manifest.times(agent);
        if let Some(threshold) = manifest.learned(agent, "model", 80) {
            assert!(threshold <= 100, "no score is above 100");
        }
        manifest.has_other_settings(agent, "settings");
        let mut noted = manifest.clone();
        let page = || NewPage {
            name: "page.md",
            text: "text",
            settings: String::new(),
            model: "model",
        };
        noted.note(&made.result, page(), times);
        let once = noted.clone();
        noted.note(&made.result, page(), times);
        assert_eq!(noted, once, "a page that is noted twice is noted once");
    }
}
