//! Judges captures by the rules.

mod closing;
mod handshake;
mod messages;
mod offline;
mod talk;
mod transport;

pub use talk::Task;

use crate::capture::{Capture, End};
use crate::dissect;
use crate::finding::Broken;
use talk::Talk;

/// Judges the capture of a case.
///
/// # Errors
///
/// Returns the first rule that the capture breaks.
pub fn judge(task: &Task, capture: &Capture) -> Result<(), Broken> {
    let case = &task.case;
    if case.is_offline() {
        return offline::ping(capture);
    }
    let handshake = handshake::check(task, capture)?;
    let client = dissect::messages(capture, End::Client)?;
    let server = dissect::messages(capture, End::Server)?;
    let talk = Talk { capture, mtu: handshake.mtu(), client, server };
    transport::mtu_of_path(case, &talk)?;
    // Invalid datagrams are reported before missing ones, which may be their consequence.
    messages::sent(case, &talk)?;
    transport::fits(&talk)?;
    messages::echoed(&talk)?;
    messages::indices(case, &talk)?;
    transport::recovered(case, &talk)?;
    messages::arrived(&talk)?;
    // This check precedes that for missing messages, because a connection that closed during the pause has no
    // last message.
    if case.pause > 0 {
        closing::idle(case, &talk)?;
    }
    messages::all_sent(case, &talk)?;
    messages::all_echoed(case, &talk)?;
    transport::path(case, &talk)?;
    transport::acknowledged(&talk)?;
    if case.is_about_the_end() {
        closing::goodbye(&talk)?;
    }
    transport::readable(capture)?;
    messages::echo_kinds(case, &talk)?;
    if case.is_about_the_handshake() {
        handshake.formal()?;
    }
    if case.is_about_numbers() {
        transport::fresh_numbers(capture)?;
        transport::acknowledgements_of_sent(capture)?;
    }
    Ok(())
}
