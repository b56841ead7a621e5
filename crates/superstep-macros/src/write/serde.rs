//! `Serialize` and `Deserialize` of the state and of its update.
//!
//! Both are a list of slots. A slot that is absent from the data keeps its value from `default()`; a name without a slot is
//! refused, unless it is listed as removed.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{Ident, LitStr, Path};

use super::at;
use crate::parse::{Field, Kind, Model};

/// A field of the type with its name on the wire.
struct Slot {
    place: Ident,
    wire: String,
    /// Type on the wire.
    ty: TokenStream,
    held: FieldForm,
}

/// How the field holds what is on the wire.
enum FieldForm {
    /// As it is; always written.
    Plain,
    /// As `Some`; `None` is not written.
    Option,
    /// As a list; an empty one is not written.
    List,
}

pub(super) fn of_state(model: &Model) -> TokenStream {
    let slots: Vec<Slot> = stored(model)
        .map(|field| Slot {
            place: field.ident.clone(),
            wire: field.wire.clone(),
            ty: field.ty.to_token_stream(),
            held: FieldForm::Plain,
        })
        .collect();
    let removed: Vec<String> = model.removed.iter().map(LitStr::value).collect();
    // Through `State`, so that a state without `Default` is one error, at `impl State`.
    let krate = &model.krate;
    let default = quote!({
        fn __default<__T: #krate::State>() -> __T {
            __T::default()
        }
        __default()
    });
    let serialize = serialize(model, &model.ident, &slots);
    let deserialize = deserialize(model, &model.ident, &slots, &removed, &default);
    quote!(#serialize #deserialize)
}

pub(super) fn of_update(model: &Model) -> TokenStream {
    let slots: Vec<Slot> = stored(model)
        .flat_map(|field| [Some(write(&model.krate, field)), overwrite(field)])
        .flatten()
        .collect();
    let removed: Vec<String> = model
        .removed
        .iter()
        .map(LitStr::value)
        .flat_map(|name| [format!("={name}"), name])
        .collect();
    let default = quote!(::core::default::Default::default());
    let serialize = serialize(model, &model.update, &slots);
    let deserialize = deserialize(model, &model.update, &slots, &removed, &default);
    quote!(#serialize #deserialize)
}

fn stored(model: &Model) -> impl Iterator<Item = &Field> {
    model
        .fields
        .iter()
        .filter(|field| !matches!(field.kind, Kind::Untracked))
}

/// Returns the slot for what a plain setter writes.
fn write(krate: &Path, field: &Field) -> Slot {
    let ty = &field.ty;
    let (ty, held) = match &field.kind {
        Kind::Messages(item) => (
            quote!(::std::vec::Vec<#krate::MessageWrite<#item>>),
            FieldForm::List,
        ),
        Kind::Append(_) | Kind::Topic(_) => (quote!(#ty), FieldForm::List),
        Kind::Last | Kind::Reduce(_) | Kind::Ephemeral | Kind::Untracked => {
            (quote!(#ty), FieldForm::Option)
        }
    };
    Slot {
        place: field.ident.clone(),
        wire: field.wire.clone(),
        ty,
        held,
    }
}

/// Returns the slot for what replaces the whole channel, if the field has one.
fn overwrite(field: &Field) -> Option<Slot> {
    let place = field.overwrite()?;
    Some(Slot {
        place,
        wire: field.overwrite_wire(),
        ty: field.ty.to_token_stream(),
        held: FieldForm::Option,
    })
}

fn serialize(model: &Model, ident: &Ident, slots: &[Slot]) -> TokenStream {
    let serde = serde(&model.krate);
    let name = ident.to_string();
    let counts = slots.iter().map(Slot::is_there);
    let fields = slots.iter().map(|slot| slot.serialize(&serde));
    quote! {
        #[automatically_derived]
        impl #serde::Serialize for #ident {
            fn serialize<__S: #serde::Serializer>(&self, serializer: __S) -> ::core::result::Result<__S::Ok, __S::Error> {
                let count = 0 #(+ ::core::primitive::usize::from(#counts))*;
                #[allow(unused_mut, reason = "a state may have no channels")]
                let mut fields = #serde::Serializer::serialize_struct(serializer, #name, count)?;
                #(#fields)*
                #serde::ser::SerializeStruct::end(fields)
            }
        }
    }
}

fn deserialize(
    model: &Model,
    ident: &Ident,
    slots: &[Slot],
    removed: &[String],
    default: &TokenStream,
) -> TokenStream {
    let serde = serde(&model.krate);
    let serde_text = serde.to_string();
    let name = ident.to_string();
    let fields = slots.iter().map(|slot| slot.helper_field(&model.krate));
    let ignored = removed
        .iter()
        .enumerate()
        .map(|(at, wire)| ignored_field(&serde, at, wire));
    let fill_in = slots.iter().map(Slot::fill_in);
    quote! {
        #[automatically_derived]
        impl<'de> #serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #serde::Deserializer<'de>>(deserializer: __D) -> ::core::result::Result<Self, __D::Error> {
                #[derive(#serde::Deserialize)]
                #[serde(crate = #serde_text, rename = #name, deny_unknown_fields)]
                #[allow(dead_code, reason = "what was removed is read and dropped")]
                struct __Stored { #(#fields,)* #(#ignored,)* }

                #[allow(unused_variables, reason = "a state may have no channels")]
                let stored = <__Stored as #serde::Deserialize>::deserialize(deserializer)?;
                #[allow(unused_mut, reason = "a state may have no channels")]
                let mut whole: Self = #default;
                #(#fill_in)*
                ::core::result::Result::Ok(whole)
            }
        }
    }
}

impl Slot {
    fn is_there(&self) -> TokenStream {
        let place = &self.place;
        match self.held {
            FieldForm::Plain => quote!(true),
            FieldForm::Option => quote!(self.#place.is_some()),
            FieldForm::List => quote!(!self.#place.is_empty()),
        }
    }

    fn serialize(&self, serde: &TokenStream) -> TokenStream {
        let Self {
            place, wire, ty, ..
        } = self;
        let field = |value| {
            at(
                ty.span(),
                quote!(#serde::ser::SerializeStruct::serialize_field(&mut fields, #wire, #value)?;),
            )
        };
        match self.held {
            FieldForm::Plain => field(quote!(&self.#place)),
            FieldForm::Option => {
                let field = field(quote!(value));
                quote!(if let ::core::option::Option::Some(value) = &self.#place { #field })
            }
            FieldForm::List => {
                let field = field(quote!(&self.#place));
                quote!(if !self.#place.is_empty() { #field })
            }
        }
    }

    /// The helper field is an `Option<T>`: absent is `None`, and `T` decides what `null` means.
    fn helper_field(&self, krate: &Path) -> TokenStream {
        let Self {
            place, wire, ty, ..
        } = self;
        let present = LitStr::new(&quote!(#krate::state::present).to_string(), ty.span());
        quote! {
            #[serde(rename = #wire, default, deserialize_with = #present)]
            #place: ::core::option::Option<#ty>
        }
    }

    fn fill_in(&self) -> TokenStream {
        let place = &self.place;
        let value = match self.held {
            FieldForm::Plain | FieldForm::List => quote!(value),
            FieldForm::Option => quote!(::core::option::Option::Some(value)),
        };
        quote! {
            if let ::core::option::Option::Some(value) = stored.#place {
                whole.#place = #value;
            }
        }
    }
}

fn ignored_field(serde: &TokenStream, at: usize, wire: &str) -> TokenStream {
    let place = format_ident!("__removed_{at}");
    quote! {
        #[serde(rename = #wire, default)]
        #place: #serde::de::IgnoredAny
    }
}

/// Serde as Superstep re-exports it, for users who do not depend on it themselves.
fn serde(krate: &Path) -> TokenStream {
    quote!(#krate::__private::serde)
}
