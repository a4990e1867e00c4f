//! Each peer decides alone whom it lets in (without the features `alloc` and `server`).

use core::net::IpAddr;

use super::incoming::Incoming;
use super::reservation::{Rejection, Request};
use crate::rate_limit::{Allowance, Rates};
use crate::time::Instant;

/// A peer's part in a decision with others, which there is none of.
#[derive(Debug)]
pub(crate) enum Member {}

impl Member {
    pub(crate) const fn reserve(&self, _: Instant, _: u16, _: &Request) -> Result<(), Rejection> {
        match *self {}
    }

    pub(crate) const fn knows(&self, _: u64) -> bool {
        match *self {}
    }

    pub(crate) const fn incoming(&self) -> usize {
        match *self {}
    }

    pub(crate) const fn admits_answer(&self, _: &[u8; 16], _: Rates, _: Instant, _: IpAddr) -> bool {
        match *self {}
    }

    pub(crate) const fn has_unvalidated_left(&self, _: Allowance, _: Instant) -> bool {
        match *self {}
    }

    pub(crate) const fn take_unvalidated(&self, _: Allowance, _: Instant) {
        match *self {}
    }

    pub(crate) const fn change(&self, _: u16, _: (Incoming, Incoming), _: Instant, _: Instant) {
        match *self {}
    }
}
