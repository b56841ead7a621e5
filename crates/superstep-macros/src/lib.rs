//! `#[derive(State)]`, and nothing else.
//!
//! The derive turns a plain struct into the state of a graph: one channel per field, a typed partial update, and serde's traits
//! under the wire names. It writes no control flow and no `await`. You can write its output by hand; the documentation of the
//! derive shows it written by hand.
//!
//! There are two halves: `parse` reads the struct and its attributes into a model and finds every problem; `write` turns a
//! valid model into code, and never fails.

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

mod names;
mod parse;
mod write;

#[doc = include_str!("state.md")]
///
/// ```text
#[doc = include_str!("../docs/by_hand.rs")]
/// ```
// The listing is a separate file because a test of superstep-core compiles and runs it.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match parse::model(&input) {
        Ok(model) => write::all(&model).into(),
        Err(faults) => faults.into_compile_error().into(),
    }
}
