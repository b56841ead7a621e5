//! From a model to code: the update type, serde's traits for both types, and the state itself.
//!
//! Paths are absolute and helper names start with `__`, so that nothing in the user's scope conflicts. Spans point at the
//! user's own types and names wherever the compiler may report an error.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::quote;

use crate::parse::Model;

mod schema;
mod serde;
mod state;
mod update;

/// Returns everything that the derive writes.
pub(crate) fn all(model: &Model) -> TokenStream {
    let parts = [
        serde::of_state(model),
        update::definition(model),
        update::methods(model),
        serde::of_update(model),
        update::state_update(model),
        state::state(model),
        update::into_command(model),
    ];
    quote!(#(#parts)*)
}

/// Returns the same code with all spans at one place in the user's code.
///
/// The compiler drops an error that repeats another at the same place. So a mistake that affects several pieces of code is
/// reported once, where the user can fix it.
fn at(span: Span, code: TokenStream) -> TokenStream {
    code.into_iter()
        .map(|mut token| {
            if let TokenTree::Group(group) = &token {
                token = Group::new(group.delimiter(), at(span, group.stream())).into();
            }
            token.set_span(span);
            token
        })
        .collect()
}
