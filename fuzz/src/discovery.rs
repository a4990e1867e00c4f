//! The relay's server announcements, which the included admission resolves to targets.

#[path = "../../relay/src/discovery/announcement.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod announcement;

pub(crate) use announcement::Announcement;
