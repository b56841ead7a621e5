//! What the programs that check this workspace share: where the workspace is, how they start programs in it, folders that are
//! installed whole, and choices that follow from a seed.
//!
//! [`workspace::cargo`] and [`workspace::program`] start programs, [`console::Page`] runs the commands of pages,
//! [`folder::replace_folder`] installs, [`prng::Prng`] makes the
//! choices. Ports are in `testing/ports`,
//! which the tests of product crates use, too.
//!
//! It depends on none of our crates, so `cargo xtask verify` still builds, and says what is wrong, while one does not compile.

pub mod console;
pub mod folder;
pub mod prng;
pub mod workspace;
