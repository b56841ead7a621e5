//! Runs fuzz targets; `cargo xtask fuzz` starts it.
//!
//! An ordinary build mutates the corpus. A build with `--cfg guided_fuzzing` is a libFuzzer program for the target that
//! `FUZZ_TARGET` names.

#![cfg_attr(guided_fuzzing, no_main)]

#[cfg(not(guided_fuzzing))]
mod plain;

#[cfg(guided_fuzzing)]
mod guided {
    use std::sync::LazyLock;

    use fuzz_targets::Target;

    static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        fuzz_targets::target(&name)
            .unwrap_or_else(|| panic!("FUZZ_TARGET is `{name}`, which is not a target"))
    });

    libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { (TARGET.run)(bytes) });
}

#[cfg(not(guided_fuzzing))]
fn main() -> std::process::ExitCode {
    plain::main()
}
