//! From a model to code: the update type, serde's traits for both types, and the state itself.
//!
//! Paths are absolute and helper names begin with `__`, so that nothing the user has in scope gets in
//! the way. Spans lie on the user's own types and names wherever the compiler may complain.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::quote;

use crate::parse::Model;

mod serde;
mod state;
mod update;

/// Everything the derive writes.
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

/// The same code, all of it at one place of the user's.
///
/// The compiler drops an error that repeats another at the same place, so a fault that several
/// pieces of code run into is reported once, and where the user can do something about it.
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
