//! The rules by which captures are judged.

/// A rule, with the section of docs/raknet.md that states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name in results.
    pub name: &'static str,
    /// The anchor of its section in docs/raknet.md; empty for rules of the interface between runner and peer.
    pub section: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Rule {
    /// Returns true if a connection can work even though this rule is broken.
    #[must_use]
    pub fn is_formal(&self) -> bool {
        [FITS, READABLE, ECHO_KIND, COOKIE, MTU, FRESH_NUMBER, ACK_OF_SENT].contains(self)
    }

    /// Returns true if a capture that breaks this rule first contains no open connection.
    #[must_use]
    pub fn is_about_opening(&self) -> bool {
        [STARTED, HANDSHAKE, VERSION].contains(self)
    }
}

macro_rules! rules {
    ($($id:ident = $name:literal, $section:literal, $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $id: Rule = Rule { name: $name, section: $section, text: $text };
        )*
        /// Every rule, roughly in the order in which captures are checked.
        pub const ALL: &[Rule] = &[$($id),*];
    };
}

rules! {
    STARTED = "started", "", "Both programs start, the server prints `ready` when it listens, and the client sends a datagram.";
    HANDSHAKE = "handshake", "opening-a-connection", "The seven messages of the handshake arrive in their order.";
    VERSION = "version", "offline-messages", "Request 1 has the protocol version of the case.";
    PATH_MTU = "path-mtu", "connection-attempts", "The MTU of the connection fits the path.";
    SENT = "sent", "", "The client sends the messages of the case, each with the specified size.";
    KIND = "kind", "capsules", "The client sends with the reliability of the case.";
    PARTS = "parts", "splits", "The parts of a message share a count and have each index once.";
    FITS = "fits", "sizes", "No datagram of the connection is longer than the MTU less 28 bytes.";
    ECHO_SAME = "echo-same", "splits", "Every echo has the bytes of its message.";
    ECHO_ONCE = "echo-once", "duplicates", "No message comes back twice.";
    ORDER = "order", "ordering", "Ordering indices follow the order of the messages.";
    SEQUENCE = "sequence", "ordering", "Sequencing indices increase with the messages.";
    SAME_RESEND = "same-resend", "gaps", "A reliable message number is never reused for other content.";
    RECOVERED = "recovered", "gaps", "A reliable message in a dropped datagram is sent again until it arrives.";
    ARRIVED = "arrived", "acknowledgements", "Every message of the client arrives.";
    PAUSE = "pause", "", "Before its last message the client is idle for the time that the case specifies.";
    KEPT_OPEN = "kept-open", "keeping-and-closing-it", "Neither end closes an idle connection.";
    KEPT_ALIVE = "kept-alive", "keeping-and-closing-it", "An idle connection carries datagrams of both ends.";
    PING_ANSWERED = "ping-answered", "pings", "A connected ping is answered by a pong with its time.";
    ECHOED = "echoed", "", "Every message comes back.";
    TOUCHED = "touched", "", "The proxy dropped, delayed or duplicated a message from each end. Otherwise the case would prove nothing.";
    ACKED = "acked", "acknowledgements", "Every reliable message that arrived is acknowledged.";
    GOODBYE = "goodbye", "keeping-and-closing-it", "The client ends its connection by message 15.";
    GOODBYE_ACKED = "goodbye-acked", "keeping-and-closing-it", "The server acknowledges message 15.";
    SILENCE = "silence", "keeping-and-closing-it", "After message 15 the server sends nothing but acknowledgements.";
    READABLE = "readable", "datagrams", "Every datagram is an offline message, or one of a connection that can be read to its end.";
    ECHO_KIND = "echo-kind", "capsules", "The server sends with the reliability of the case.";
    COOKIE = "cookie", "cookies", "Request 2 returns the cookie of reply 1, if that has one.";
    MTU = "mtu", "connection-attempts", "No reply raises the MTU above that of its request.";
    FRESH_NUMBER = "fresh-number", "gaps", "Every data datagram has a new number, also when it carries a resend.";
    ACK_OF_SENT = "ack-of-sent", "acknowledgements", "An acknowledgement names only datagrams that arrived.";
    PONG = "pong", "unconnected-pings", "A ping is answered by a pong with its time.";
    ADVERTISEMENT = "advertisement", "offline-messages", "The pong has data, fewer than 400 bytes.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rule_names_are_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
