//! The update type: its definition, its setters and readers, `StateUpdate`, and the conversion to a command.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Path, Type};

use super::at;
use crate::parse::{Field, Kind, Model};

/// Returns the struct, with a field for each write and for each overwrite.
pub(super) fn definition(model: &Model) -> TokenStream {
    let Model {
        vis,
        ident,
        update,
        krate,
        ..
    } = model;
    let doc = format!("A partial update of [`{ident}`]: what is not set does not change.");
    let places = model.fields.iter().map(|field| {
        let (place, ty) = (&field.ident, place_type(krate, field));
        let overwrite = field.overwrite().map(|overwrite| {
            let ty = &field.ty;
            quote!(#overwrite: ::core::option::Option<#ty>,)
        });
        quote!(#place: #ty, #overwrite)
    });
    quote! {
        #[doc = #doc]
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::default::Default)]
        #vis struct #update { #(#places)* }
    }
}

fn place_type(krate: &Path, field: &Field) -> TokenStream {
    let ty = &field.ty;
    match &field.kind {
        Kind::Append(_) | Kind::Topic(_) => quote!(#ty),
        Kind::Messages(item) => quote!(::std::vec::Vec<#krate::MessageWrite<#item>>),
        Kind::Last | Kind::Reduce(_) | Kind::Ephemeral | Kind::Untracked => {
            quote!(::core::option::Option<#ty>)
        }
    }
}

/// Returns the setters, which consume the update, and the readers, for a check.
pub(super) fn methods(model: &Model) -> TokenStream {
    let update = &model.update;
    let methods = model.fields.iter().map(|field| {
        let set = match &field.kind {
            Kind::Append(item) | Kind::Topic(item) => add_items(model, field, item),
            Kind::Messages(item) => put_messages(model, field, item),
            Kind::Last | Kind::Reduce(_) | Kind::Ephemeral | Kind::Untracked => {
                set_value(model, field)
            }
        };
        let overwrite = overwrite(model, field);
        let written = written(model, field);
        quote!(#set #overwrite #written)
    });
    quote! {
        #[allow(dead_code, reason = "few graphs write every channel in every way")]
        #[allow(non_snake_case, reason = "a field that begins with `_` makes methods with `__`")]
        #[allow(private_interfaces, private_bounds, reason = "the fields of a state may be more private than the state")]
        impl #update { #(#methods)* }
    }
}

fn set_value(model: &Model, field: &Field) -> TokenStream {
    let (
        vis,
        Field {
            ident, ty, wire, ..
        },
    ) = (&model.vis, field);
    let doc = match field.kind {
        Kind::Reduce(_) => {
            format!("Folds this into `{wire}`. Of several calls the last one counts.")
        }
        _ => format!("Sets `{wire}`."),
    };
    let (taken, value) = taken(ty);
    quote! {
        #[doc = #doc]
        #[must_use]
        #vis fn #ident(mut self, value: #taken) -> Self {
            self.#ident = ::core::option::Option::Some(#value);
            self
        }
    }
}

/// Returns how a setter takes a value of this type, and the value itself.
///
/// The setter accepts anything that converts, except where that would leave the type of a literal such as `1` open.
fn taken(ty: &Type) -> (TokenStream, TokenStream) {
    let inner = crate::parse::argument_of(ty, "Option").unwrap_or(ty);
    if is_primitive(inner) {
        (quote!(#ty), quote!(value))
    } else {
        (
            quote!(impl ::core::convert::Into<#ty>),
            quote!(value.into()),
        )
    }
}

fn is_primitive(ty: &Type) -> bool {
    const PRIMITIVES: [&str; 16] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
        "u32", "u64", "u128", "usize",
    ];
    matches!(ty, Type::Path(path) if PRIMITIVES.iter().any(|name| path.path.is_ident(name)))
}

fn add_items(model: &Model, field: &Field, item: &Type) -> TokenStream {
    let (vis, Field { ident, wire, .. }) = (&model.vis, field);
    let all = format_ident!("{}_all", ident);
    let (doc, doc_all) = (
        format!("Adds an item to `{wire}`."),
        format!("Adds items to `{wire}`."),
    );
    let (taken, value) = taken(item);
    quote! {
        #[doc = #doc]
        #[must_use]
        #vis fn #ident(mut self, value: #taken) -> Self {
            self.#ident.push(#value);
            self
        }

        #[doc = #doc_all]
        #[must_use]
        #vis fn #all(mut self, items: impl ::core::iter::IntoIterator<Item = #item>) -> Self {
            self.#ident.extend(items);
            self
        }
    }
}

fn put_messages(model: &Model, field: &Field, item: &Type) -> TokenStream {
    let (Model { vis, krate, .. }, Field { ident, wire, .. }) = (model, field);
    let (all, remove) = (
        format_ident!("{}_all", ident),
        format_ident!("remove_{}", ident),
    );
    let doc = format!("Adds a message to `{wire}`, or replaces the one with the same id.");
    let doc_all = format!("Adds messages to `{wire}`; each replaces the one with the same id.");
    let doc_remove = format!("Removes the message with this id from `{wire}`.");
    quote! {
        #[doc = #doc]
        #[must_use]
        #vis fn #ident(mut self, item: impl ::core::convert::Into<#item>) -> Self {
            self.#ident.push(#krate::MessageWrite::Put(item.into()));
            self
        }

        #[doc = #doc_all]
        #[must_use]
        #vis fn #all(mut self, items: impl ::core::iter::IntoIterator<Item = #item>) -> Self {
            self.#ident.extend(::core::iter::IntoIterator::into_iter(items).map(#krate::MessageWrite::Put));
            self
        }

        #[doc = #doc_remove]
        #[must_use]
        #vis fn #remove(mut self, id: impl ::core::convert::Into<::std::string::String>) -> Self {
            self.#ident.push(#krate::MessageWrite::Remove(id.into()));
            self
        }
    }
}

fn overwrite(model: &Model, field: &Field) -> Option<TokenStream> {
    let (vis, Field { ty, wire, .. }) = (&model.vis, field);
    let overwrite = field.overwrite()?;
    let overwritten = format_ident!("overwritten_{}", field.ident);
    let (taken, value) = taken(ty);
    let doc_read = format!("What this update replaces the whole of `{wire}` with.");
    let doc = format!(
        "Replaces the whole of `{wire}`; what siblings write to it in this superstep is dropped."
    );
    Some(quote! {
        #[doc = #doc]
        #[must_use]
        #vis fn #overwrite(mut self, value: #taken) -> Self {
            self.#overwrite = ::core::option::Option::Some(#value);
            self
        }

        #[doc = #doc_read]
        #vis fn #overwritten(&self) -> ::core::option::Option<&#ty> {
            self.#overwrite.as_ref()
        }
    })
}

fn written(model: &Model, field: &Field) -> TokenStream {
    let (
        Model { vis, krate, .. },
        Field {
            ident, ty, wire, ..
        },
    ) = (model, field);
    let written = format_ident!("written_{}", ident);
    let doc = format!("What this update writes to `{wire}`, overwrites apart.");
    let (returned, body) = match &field.kind {
        Kind::Append(item) | Kind::Topic(item) => (quote!(&[#item]), quote!(&self.#ident)),
        Kind::Messages(item) => (quote!(&[#krate::MessageWrite<#item>]), quote!(&self.#ident)),
        Kind::Last | Kind::Reduce(_) | Kind::Ephemeral | Kind::Untracked => (
            quote!(::core::option::Option<&#ty>),
            quote!(self.#ident.as_ref()),
        ),
    };
    quote! {
        #[doc = #doc]
        #vis fn #written(&self) -> #returned {
            #body
        }
    }
}

/// Returns `impl StateUpdate`.
pub(super) fn state_update(model: &Model) -> TokenStream {
    let Model { update, krate, .. } = model;
    let overwritten = overwritten(model);
    let written = model.fields.iter().zip(0u32..).map(|(field, index)| {
        let is_written = is_written(field);
        quote!(.with(#index, #is_written))
    });
    let discard = discard(model);
    let name_messages = name_messages(model);
    let move_untracked = move_untracked(model);
    quote! {
        #[automatically_derived]
        impl #krate::StateUpdate for #update {
            fn written(&self) -> #krate::ChannelSet {
                #krate::ChannelSet::EMPTY #(#written)*
            }

            #overwritten
            #discard
            #name_messages
            #move_untracked
        }
    }
}

fn is_written(field: &Field) -> TokenStream {
    let place = &field.ident;
    let plainly = match field.item() {
        Some(_) => quote!(!self.#place.is_empty()),
        None => quote!(self.#place.is_some()),
    };
    match field.overwrite() {
        Some(overwrite) => quote!(#plainly || self.#overwrite.is_some()),
        None => plainly,
    }
}

fn overwritten(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let channels = model
        .fields
        .iter()
        .zip(0u32..)
        .filter_map(|(field, index)| {
            let overwrite = field.overwrite()?;
            Some(quote!(.with(#index, self.#overwrite.is_some())))
        });
    quote! {
        fn overwritten(&self) -> #krate::ChannelSet {
            #krate::ChannelSet::EMPTY #(#channels)*
        }
    }
}

fn discard(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let forget = model.fields.iter().zip(0u32..).map(|(field, index)| {
        let places = [Some(field.ident.clone()), field.overwrite()]
            .into_iter()
            .flatten();
        quote! {
            if channels.has(#index) {
                #(self.#places = ::core::default::Default::default();)*
            }
        }
    });
    quote! {
        #[allow(unused_variables, reason = "a state may have no channels")]
        fn discard(&mut self, channels: #krate::ChannelSet) {
            #(#forget)*
        }
    }
}

/// Assigns ids in the order in which the writes are applied: the overwrite first.
fn name_messages(model: &Model) -> Option<TokenStream> {
    let krate = &model.krate;
    let channels: Vec<TokenStream> = model
        .fields
        .iter()
        .filter_map(|field| {
            let Kind::Messages(item) = &field.kind else {
                return None;
            };
            let (place, overwrite) = (&field.ident, field.overwrite()?);
            let is_message = is_message(krate, item);
            let name = at(
                item.span(),
                quote! {
                    if #krate::Message::id(message).is_none() {
                        #krate::Message::set_id(message, ids.next_id());
                    }
                },
            );
            Some(quote! {
                #is_message
                let put = self.#place.iter_mut().filter_map(|write| match write {
                    #krate::MessageWrite::Put(message) => ::core::option::Option::Some(message),
                    #krate::MessageWrite::Remove(_) => ::core::option::Option::None,
                });
                for message in self.#overwrite.iter_mut().flatten().chain(put) { #name }
            })
        })
        .collect();
    (!channels.is_empty()).then(|| {
        quote! {
            fn name_messages(&mut self, ids: &mut #krate::state::MessageIds) { #(#channels)* }
        }
    })
}

/// Fails to compile, with the message of `Message`, if the item of a messages channel is not one.
pub(super) fn is_message(krate: &Path, item: &Type) -> TokenStream {
    at(item.span(), quote!(let _ = <#item as #krate::Message>::id;))
}

fn move_untracked(model: &Model) -> Option<TokenStream> {
    let places: Vec<_> = model
        .fields
        .iter()
        .filter(|field| matches!(field.kind, Kind::Untracked))
        .map(|field| &field.ident)
        .collect();
    (!places.is_empty()).then(|| {
        quote! {
            fn move_untracked(&mut self, from: &mut Self) {
                #(self.#places = from.#places.take();)*
            }
        }
    })
}

/// Returns `impl From<Update> for Command`, so that a node can end with `.into()`.
pub(super) fn into_command(model: &Model) -> TokenStream {
    let Model {
        ident,
        update,
        krate,
        ..
    } = model;
    quote! {
        #[automatically_derived]
        impl ::core::convert::From<#update> for #krate::Command<#ident> {
            fn from(update: #update) -> Self {
                #krate::Command::update(update)
            }
        }
    }
}
