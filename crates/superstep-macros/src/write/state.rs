//! `impl State`: the table of channels, and the rule of each as a line or two.
//!
//! The user's functions are named next to our variables here, so even those start with `__`: a reducer may well be called
//! `update`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ExprPath, Ident, Path, Type};

use super::{at, schema, update};
use crate::parse::{Field, Kind, Model};

pub(super) fn state(model: &Model) -> TokenStream {
    let Model {
        ident,
        update,
        krate,
        version,
        ..
    } = model;
    let channels = model.fields.iter().map(|field| channel(krate, field));
    let begin_step = begin_step(model);
    let apply = model.fields.iter().map(|field| apply(krate, field));
    let folds = risky_folds(model);
    let exact = read_back_exactly(model);
    let check = check(model);
    let schema = schema::schema(model);
    let migrate = migrate(model);
    quote! {
        #[automatically_derived]
        impl #krate::State for #ident {
            type Update = #update;

            const VERSION: ::core::primitive::u32 = #version;

            const CHANNELS: &'static [#krate::Channel] = &[#(#channels),*];

            #exact
            #folds
            #begin_step

            #[allow(unused_variables, reason = "a state may have no channels")]
            fn apply(&mut self, __update: #update) {
                #(#apply)*
            }

            #check
            #schema
            #migrate
        }
    }
}

fn channel(krate: &Path, field: &Field) -> TokenStream {
    let wire = &field.wire;
    let kind = match field.kind {
        Kind::Last => quote!(Last),
        Kind::Append(_) => quote!(Append),
        Kind::Messages(_) => quote!(Messages),
        Kind::Reduce(_) => quote!(Reduce),
        Kind::Topic(_) => quote!(Topic),
        Kind::Ephemeral => quote!(Ephemeral),
        Kind::Untracked => quote!(Untracked),
    };
    quote!(#krate::Channel { name: #wire, kind: #krate::ChannelKind::#kind })
}

/// Returns the channels whose type is known to read back exactly. A message is stored in a form of its own, and what is
/// untracked is not stored at all.
fn read_back_exactly(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let known = (0u32..)
        .zip(&model.fields)
        .filter(|(_, field)| !matches!(field.kind, Kind::Messages(_) | Kind::Untracked))
        .map(|(index, Field { ty, .. })| {
            quote!(.with(#index, <#krate::__private::ReadBack<#ty>>::IS_EXACT))
        });
    quote! {
        const READ_BACK_EXACTLY: #krate::ChannelSet = {
            #[allow(unused_imports, reason = "every type may be known")]
            use #krate::__private::ReadBackUnknown as _;
            #krate::ChannelSet::EMPTY #(#known)*
        };
    }
}

/// Returns the reduced channels whose type may hold what JSON cannot: floats, and every type that we do not know.
fn risky_folds(model: &Model) -> Option<TokenStream> {
    let krate = &model.krate;
    let risky: Vec<_> = (0u32..)
        .zip(&model.fields)
        .filter(|(_, field)| {
            matches!(field.kind, Kind::Reduce(_)) && !is_always_storable(&field.ty)
        })
        .collect();
    let set = risky.iter().map(|(index, _)| quote!(.with(#index, true)));
    let asked = risky.iter().map(|(index, field)| {
        let (place, wire) = (&field.ident, &field.wire);
        quote! {
            if folded.has(#index) && !#krate::state::can_be_stored(&self.#place) {
                return ::core::option::Option::Some(#wire);
            }
        }
    });
    (!risky.is_empty()).then(|| {
        quote! {
            const RISKY_FOLDS: #krate::ChannelSet = #krate::ChannelSet::EMPTY #(#set)*;

            fn unstorable_fold(&self, folded: #krate::ChannelSet) -> ::core::option::Option<&'static str> {
                #(#asked)*
                ::core::option::Option::None
            }
        }
    })
}

/// Whether every value of a type can be stored, as far as its name shows.
fn is_always_storable(ty: &Type) -> bool {
    const STORABLE: [&str; 13] = [
        "bool", "char", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize",
        "String",
    ];
    matches!(ty, Type::Path(path) if STORABLE.iter().any(|name| path.path.is_ident(name)))
}

fn begin_step(model: &Model) -> Option<TokenStream> {
    let cleared: Vec<TokenStream> = model
        .fields
        .iter()
        .filter(|field| matches!(field.kind, Kind::Topic(_) | Kind::Ephemeral))
        .map(|Field { ident, ty, .. }| {
            let default = quote_spanned!(ty.span()=> <#ty as ::core::default::Default>::default());
            quote!(self.#ident = #default;)
        })
        .collect();
    (!cleared.is_empty()).then(|| quote!(fn begin_step(&mut self) { #(#cleared)* }))
}

fn apply(krate: &Path, field: &Field) -> TokenStream {
    let place = &field.ident;
    let overwrite = field
        .overwrite()
        .map(|overwrite| replace(place, &overwrite));
    let write = match &field.kind {
        Kind::Last | Kind::Ephemeral | Kind::Untracked => replace(place, place),
        Kind::Append(_) | Kind::Topic(_) => quote!(self.#place.extend(__update.#place);),
        Kind::Messages(item) => {
            let is_message = update::is_message(krate, item);
            let merge = quote!(#krate::channel::merge_messages(&mut self.#place, __update.#place););
            let merge = at(item.span(), merge);
            quote!(#is_message #merge)
        }
        Kind::Reduce(reducer) => reduce(field, reducer),
    };
    quote!(#overwrite #write)
}

fn replace(place: &Ident, with: &Ident) -> TokenStream {
    quote! {
        if let ::core::option::Option::Some(__value) = __update.#with {
            self.#place = __value;
        }
    }
}

fn reduce(Field { ident, ty, .. }: &Field, reducer: &ExprPath) -> TokenStream {
    // With the span of the type, so that a type without `Default` is an error there.
    let old = quote_spanned!(ty.span()=> ::core::mem::take::<#ty>(&mut self.#ident));
    let reducer = typed(at(ty.span(), quote!(fn(#ty, #ty) -> #ty)), reducer);
    quote! {
        if let ::core::option::Option::Some(__value) = __update.#ident {
            #reducer
            self.#ident = __function(#old, __value);
        }
    }
}

fn check(model: &Model) -> Option<TokenStream> {
    let Model {
        ident,
        update,
        krate,
        ..
    } = model;
    let messages: Vec<TokenStream> = model
        .fields
        .iter()
        .filter_map(|field| check_messages(krate, field))
        .collect();
    let invalid = quote!(::core::result::Result<(), #krate::error::InvalidUpdate>);
    let own = model.check.as_ref().map(|path| {
        let signature = at(ident.span(), quote!(fn(&#ident, &#update) -> #invalid));
        let function = typed(signature, path);
        quote!(#function __function(self, __update))
    });
    if messages.is_empty() && own.is_none() {
        return None;
    }
    let last = own.unwrap_or_else(|| quote!(::core::result::Result::Ok(())));
    Some(quote! {
        fn check(&self, __update: &#update) -> #invalid {
            #(#messages)*
            #last
        }
    })
}

/// Checks removals against the list as it will be after an overwrite.
fn check_messages(krate: &Path, field: &Field) -> Option<TokenStream> {
    let Field { ident, wire, .. } = field;
    let Kind::Messages(item) = &field.kind else {
        return None;
    };
    let overwrite = field.overwrite()?;
    let is_message = update::is_message(krate, item);
    let remove =
        quote!(#krate::channel::remove_unknown_message(#wire, __messages, &__update.#ident)?;);
    let remove = at(item.span(), remove);
    Some(quote! {
        #is_message
        let __messages = __update.#overwrite.as_ref().unwrap_or(&self.#ident);
        #remove
    })
}

fn migrate(model: &Model) -> Option<TokenStream> {
    let krate = &model.krate;
    let result = quote!(::core::result::Result<(), #krate::error::MigrationError>);
    let signature = quote!(fn(::core::primitive::u32, &mut #krate::state::Fields) -> #result);
    let function = typed(at(model.ident.span(), signature), model.migrate.as_ref()?);
    Some(quote! {
        fn migrate(__from: ::core::primitive::u32, __fields: &mut #krate::state::Fields) -> #result {
            #function
            __function(__from, __fields)
        }
    })
}

/// Returns `let __function: signature = path;`, so that a function of another type is an error at the path, with both types in
/// the message.
fn typed(signature: TokenStream, path: &ExprPath) -> TokenStream {
    quote_spanned!(path.span()=> let __function: #signature = #path;)
}
