//! `#[derive(State)]` and `#[tool]`.
//!
//! The derive turns a plain struct into the state of a graph: one channel per field, a typed partial update, and serde's traits
//! under the wire names. It writes no control flow and no `await`. You can write its output by hand; the documentation of the
//! derive shows it written by hand.
//!
//! There are two halves: `parse` reads the struct and its attributes into a model and finds every problem; `write` turns a
//! valid model into code, and never fails. `tool` does both for `#[tool]`, which is much smaller.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [State and channels](../../book/html/docs/concepts/state-and-channels.html)

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

mod names;
mod parse;
mod tool;
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

/// Makes a tool of an `async fn`: the model sees its name, its doc comment, and its parameters with theirs.
///
/// The function returns a `Tool` afterwards. Parameters marked `#[with]` are what the tool needs from the program: they become
/// the parameters of that function. A parameter of type `ToolCx` gets the context of the call. The class is one of `read`,
/// `idempotent` and `keyed`, or else unsafe; `name = ".."` changes the name. Everything else is set on the `Tool`.
///
/// ```text
/// /// Refunds an order.
/// #[tool(keyed)]
/// async fn refund(
///     #[with] bank: Arc<Bank>,
///     /// Number of the order.
///     order: String,
///     cents: u64,
///     cx: ToolCx,
/// ) -> Result<String, ToolError> {
///     bank.refund(&order, cents, cx.idempotency_key()).await
/// }
///
/// let agent = Agent::builder(model).tools([refund(bank)]).build()?;
/// ```
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    let settings = parse_macro_input!(settings as tool::Settings);
    let function = parse_macro_input!(function as ItemFn);
    tool::write(&settings, function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
