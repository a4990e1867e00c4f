//! One field: its attribute, and the code that packs and unpacks it.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Field, LitInt, Result, Type};

/// The maximum width of a number in bits.
const MAX_WIDTH: u32 = 64;

/// How a field is encoded.
enum Form {
    /// Like its type.
    Plain,
    /// As a raw number of this many bits.
    Raw(LitInt),
    /// As a sequence or text with at most this many elements or bytes.
    Bounded(Expr),
}

/// A field, and the name of its value in the generated code.
pub(crate) struct Packed<'a> {
    value: Ident,
    ty: &'a Type,
    form: Form,
}

impl<'a> Packed<'a> {
    pub(crate) fn new(field: &'a Field, value: Ident) -> Result<Self> {
        Ok(Self { value, ty: &field.ty, form: form(field)? })
    }

    pub(crate) const fn value(&self) -> &Ident {
        &self.value
    }

    /// Returns the code that packs the value; the value is a reference.
    pub(crate) fn pack(&self) -> TokenStream {
        let (value, ty) = (&self.value, self.ty);
        match &self.form {
            Form::Plain => quote!(<#ty as ::rakwire::codec::rabbit::Pack>::pack(#value, writer)?;),
            Form::Raw(width) => {
                quote!(::rakwire::codec::rabbit::field::pack_raw::<#ty>(#value, #width, writer)?;)
            }
            Form::Bounded(max) => {
                quote!(::rakwire::codec::rabbit::field::pack_bounded::<#ty>(#value, #max, writer)?;)
            }
        }
    }

    /// Returns the code that describes the encoding.
    pub(crate) fn describe(&self) -> TokenStream {
        let ty = self.ty;
        match &self.form {
            Form::Raw(width) => quote!(fingerprint.raw(#width);),
            Form::Plain | Form::Bounded(_) => quote!(fingerprint.nested::<#ty>();),
        }
    }

    /// Returns the statement that unpacks the value.
    pub(crate) fn unpack(&self) -> TokenStream {
        let (value, ty) = (&self.value, self.ty);
        let read = match &self.form {
            Form::Plain => quote!(<#ty as ::rakwire::codec::rabbit::Unpack<'_>>::unpack(reader)?),
            Form::Raw(width) => quote!(::rakwire::codec::rabbit::field::unpack_raw::<#ty>(#width, reader)?),
            Form::Bounded(max) => {
                quote!(::rakwire::codec::rabbit::field::unpack_bounded::<#ty>(#max, reader)?)
            }
        };
        quote!(let #value = #read;)
    }

    /// Returns the expression for the minimum number of bits that the value takes.
    pub(crate) fn min_bits(&self) -> TokenStream {
        let ty = self.ty;
        match &self.form {
            Form::Raw(width) => quote!(#width as usize),
            Form::Plain | Form::Bounded(_) => quote!(<#ty as ::rakwire::codec::rabbit::Unpack<'_>>::MIN_BITS),
        }
    }

    /// Returns a check that the width fits the type, which only the compiler can evaluate.
    pub(crate) fn check(&self) -> Option<TokenStream> {
        let Form::Raw(width) = &self.form else { return None };
        let ty = self.ty;
        Some(quote! {
            const _: () = ::core::assert!(
                #width <= <#ty as ::rakwire::codec::rabbit::field::Raw>::WIDTH,
                "the field has more bits than its type",
            );
        })
    }
}

fn form(field: &Field) -> Result<Form> {
    let mut form = Form::Plain;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("pack")) {
        if !matches!(form, Form::Plain) {
            return Err(Error::new(attribute.span(), "a field takes one width or one bound"));
        }
        form = parse(attribute)?;
    }
    Ok(form)
}

fn parse(attribute: &Attribute) -> Result<Form> {
    let mut form = None;
    attribute.parse_nested_meta(|meta| {
        if form.is_some() {
            return Err(meta.error("a field takes one width or one bound"));
        }
        if meta.path.is_ident("bits") {
            let width: LitInt = meta.value()?.parse()?;
            if !(1..=MAX_WIDTH).contains(&width.base10_parse()?) {
                return Err(Error::new(width.span(), "a width must be 1 to 64 bits"));
            }
            form = Some(Form::Raw(width));
        } else if meta.path.is_ident("max") {
            form = Some(Form::Bounded(meta.value()?.parse()?));
        } else {
            return Err(meta.error("expected `bits = …` or `max = …`"));
        }
        Ok(())
    })?;
    form.ok_or_else(|| Error::new(attribute.span(), "expected `bits = …` or `max = …`"))
}
