//! What servers announce to the relay, which its admission resolves.

#![allow(dead_code, reason = "the relay uses the rest")]

#[path = "../../relay/src/discovery/announcement.rs"]
mod announcement;

pub(crate) use announcement::Announcement;
