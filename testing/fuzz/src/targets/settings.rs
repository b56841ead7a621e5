//! `settings.json`.

use archie::cli::settings::{Engine, Store};
use archie::fuzzing::read_settings;
use superstep_agent::budget::Meter;

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    let Ok(settings) = read_settings(text) else {
        return;
    };
    if let Store::Postgres(url) = &settings.store {
        assert!(url.starts_with("postgres://") || url.starts_with("postgresql://"));
    }
    if let Engine::Restate(url) = &settings.engine {
        assert!(url.starts_with("http://") || url.starts_with("https://"));
    }
    let dollars = settings
        .budget
        .and_then(|limits| limits.get(Meter::NanoDollars));
    // A million, in billionths.
    assert!(dollars.is_none_or(|dollars| dollars <= 1_000_000_000_000_000));
}
