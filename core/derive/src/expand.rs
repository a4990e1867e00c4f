//! Generates the implementations from the shape of a type.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Generics, Lifetime, Result, parse_quote};

use crate::field::Packed;

/// The trait that is implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Pack,
    Unpack,
}

pub(crate) fn expand(input: &DeriveInput, direction: Direction) -> Result<TokenStream> {
    if let Some(attribute) = input.attrs.iter().find(|attribute| attribute.path().is_ident("pack")) {
        return Err(Error::new(attribute.span(), "`pack` applies only to fields"));
    }
    let body = match &input.data {
        Data::Struct(data) => of_struct(&data.fields)?,
        Data::Enum(data) => of_enum(&input.ident, data)?,
        Data::Union(data) => return Err(Error::new(data.union_token.span, "a union cannot be packed")),
    };
    let lifetime = lifetime(&input.generics)?;
    Ok(match direction {
        Direction::Pack => pack(input, &body),
        Direction::Unpack => unpack(input, &lifetime, &body),
    })
}

/// The parts of an implementation that depend on the type.
struct Body {
    /// Statements that pack the value.
    pack: TokenStream,
    /// An expression that unpacks the value.
    unpack: TokenStream,
    /// Statements that describe the encoding.
    describe: TokenStream,
    min_bits: TokenStream,
    checks: TokenStream,
}

fn pack(input: &DeriveInput, body: &Body) -> TokenStream {
    let name = &input.ident;
    let Body { pack, describe, checks, .. } = body;
    let (_, type_generics, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        generics
            .make_where_clause()
            .predicates
            .push(parse_quote!(#parameter: ::rakwire::codec::rabbit::Pack));
    }
    let (pack_generics, _, pack_where) = generics.split_for_impl();
    quote! {
        #checks

        #[automatically_derived]
        impl #pack_generics ::rakwire::codec::rabbit::Pack for #name #type_generics #pack_where {
            #[inline]
            fn pack(
                &self,
                writer: &mut ::rakwire::codec::rabbit::Writer<'_>,
            ) -> ::core::result::Result<(), ::rakwire::codec::rabbit::Error> {
                #pack
                ::core::result::Result::Ok(())
            }

            fn describe(fingerprint: &mut ::rakwire::codec::rabbit::Fingerprint) {
                let _ = &fingerprint;
                #describe
            }
        }
    }
}

fn unpack(input: &DeriveInput, lifetime: &Lifetime, body: &Body) -> TokenStream {
    let name = &input.ident;
    let Body { unpack, min_bits, checks, .. } = body;
    let (_, type_generics, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let parameter = &parameter.ident;
        let bound = parse_quote!(#parameter: ::rakwire::codec::rabbit::Unpack<#lifetime>);
        generics.make_where_clause().predicates.push(bound);
    }
    if input.generics.lifetimes().next().is_none() {
        generics.params.insert(0, parse_quote!(#lifetime));
    }
    let (unpack_generics, _, unpack_where) = generics.split_for_impl();
    quote! {
        #checks

        #[automatically_derived]
        impl #unpack_generics ::rakwire::codec::rabbit::Unpack<#lifetime> for #name #type_generics #unpack_where {
            const MIN_BITS: usize = #min_bits;

            #[inline]
            fn unpack(
                reader: &mut ::rakwire::codec::rabbit::Reader<#lifetime>,
            ) -> ::core::result::Result<Self, ::rakwire::codec::rabbit::Error> {
                #unpack
            }
        }
    }
}

/// Returns the lifetime of the input: that of the type, or a fresh name.
fn lifetime(generics: &Generics) -> Result<Lifetime> {
    let mut lifetimes = generics.lifetimes();
    let own = lifetimes.next().map(|parameter| parameter.lifetime.clone());
    if let Some(second) = lifetimes.next() {
        return Err(Error::new(
            second.span(),
            "a value borrows from one input, so it can have only one lifetime",
        ));
    }
    Ok(own.unwrap_or_else(|| parse_quote!('rabbit)))
}

fn of_struct(fields: &Fields) -> Result<Body> {
    let fields = Named::new(fields)?;
    let pattern = fields.pattern(&quote!(Self));
    let pack = fields.each(Packed::pack);
    let unpack = fields.each(Packed::unpack);
    Ok(Body {
        pack: quote!(let #pattern = self; #pack),
        unpack: quote!({ #unpack ::core::result::Result::Ok(#pattern) }),
        describe: fields.each(Packed::describe),
        min_bits: fields.min_bits(),
        checks: fields.each(|field| field.check().unwrap_or_default()),
    })
}

fn of_enum(name: &Ident, data: &DataEnum) -> Result<Body> {
    let Some(last) = data.variants.len().checked_sub(1) else {
        return Err(Error::new(name.span(), "an enum without variants has no values"));
    };
    let width = usize::BITS - last.leading_zeros();
    let (mut pack, mut unpack) = (TokenStream::new(), TokenStream::new());
    let mut describe = quote!(fingerprint.bytes(b"<"););
    let (mut min_bits, mut checks) = (quote!(usize::MAX), TokenStream::new());
    for (index, variant) in data.variants.iter().enumerate() {
        let index = index as u64;
        let fields = Named::new(&variant.fields)?;
        let ident = &variant.ident;
        let pattern = fields.pattern(&quote!(Self::#ident));
        let (packed, unpacked) = (fields.each(Packed::pack), fields.each(Packed::unpack));
        pack.extend(quote!(#pattern => { writer.bits(#index, #width)?; #packed }));
        unpack.extend(quote!(#index => { #unpacked ::core::result::Result::Ok(#pattern) }));
        let described = fields.each(Packed::describe);
        describe.extend(quote!(#described fingerprint.bytes(b"|");));
        let bits = fields.min_bits();
        min_bits = quote!({
            let (fewest, bits) = (#min_bits, #bits);
            if bits < fewest { bits } else { fewest }
        });
        checks.extend(fields.each(|field| field.check().unwrap_or_default()));
    }
    let of = name.to_string();
    let unpack = quote! {
        let before = reader.position();
        match reader.bits(#width)? {
            #unpack
            index => ::core::result::Result::Err(::rakwire::codec::rabbit::Error {
                kind: ::rakwire::codec::rabbit::ErrorKind::UnknownVariant { of: #of, index: index as u32 },
                bit: before,
            }),
        }
    };
    let pack = quote!(match self { #pack });
    describe.extend(quote!(fingerprint.bytes(b">");));
    Ok(Body { pack, unpack, describe, min_bits: quote!(#width as usize + #min_bits), checks })
}

/// The fields of a struct or a variant.
struct Named<'a> {
    shape: &'a Fields,
    fields: Vec<Packed<'a>>,
}

impl<'a> Named<'a> {
    fn new(shape: &'a Fields) -> Result<Self> {
        let name = |(index, field)| Packed::new(field, format_ident!("field_{index}"));
        Ok(Self { shape, fields: shape.iter().enumerate().map(name).collect::<Result<_>>()? })
    }

    /// Returns the pattern that destructures the fields, which is also the expression that constructs them.
    fn pattern(&self, path: &TokenStream) -> TokenStream {
        let values = self.fields.iter().map(Packed::value);
        match self.shape {
            Fields::Named(named) => {
                let names = named.named.iter().map(|field| &field.ident);
                quote!(#path { #(#names: #values),* })
            }
            Fields::Unnamed(_) => quote!(#path(#(#values),*)),
            Fields::Unit => path.clone(),
        }
    }

    fn each(&self, code: impl Fn(&Packed<'a>) -> TokenStream) -> TokenStream {
        self.fields.iter().map(code).collect()
    }

    fn min_bits(&self) -> TokenStream {
        let bits = self.fields.iter().map(Packed::min_bits);
        quote!(0 #(+ #bits)*)
    }
}
