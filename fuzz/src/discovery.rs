//! The server announcements to the relay, which admission resolves.

#[path = "../../relay/src/discovery/announcement.rs"]
#[allow(dead_code, reason = "the relay uses the rest")]
mod announcement;

pub(crate) use announcement::Announcement;
