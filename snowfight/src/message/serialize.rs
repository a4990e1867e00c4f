//! Serde serialization of borrowed lists and text.

use rakwire::codec::rabbit::{List, Text};
use serde::Serializer;

use super::Entity;

pub(super) fn list<S: Serializer>(list: &List<'_, Entity>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list)
}

pub(super) fn text<S: Serializer>(text: &Text<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(text)
}
