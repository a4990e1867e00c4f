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

    /// Returns true if this rule is about opening a connection: a capture that breaks it contains no open connection.
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
    HANDSHAKE = "handshake", "opening-a-connection", "The seven messages of the handshake arrive in order.";
    VERSION = "version", "offline-messages", "Request 1 contains the protocol version of the case.";
    PATH_MTU = "path-mtu", "connection-attempts", "The MTU of the connection is at most the MTU of the path.";
    SENT = "sent", "", "The client sends the messages of the case, each with the specified size.";
    KIND = "kind", "capsules", "The messages of the client have the reliability of the case.";
    PARTS = "parts", "splits", "The parts of a split message have the same part count, and each index occurs once.";
    FITS = "fits", "sizes", "No datagram of the connection is longer than the MTU minus 28 bytes for IP and UDP headers.";
    ECHO_SAME = "echo-same", "splits", "Every echo is identical to its message.";
    ECHO_ONCE = "echo-once", "duplicates", "No message is echoed twice.";
    ORDER = "order", "ordering", "Ordering indices increase in the order of the messages.";
    SEQUENCE = "sequence", "ordering", "Sequencing indices increase in the order of the messages.";
    SAME_RESEND = "same-resend", "gaps", "A reliable message number is never reused for different content.";
    RECOVERED = "recovered", "gaps", "A reliable message in a dropped datagram is retransmitted until it arrives.";
    ARRIVED = "arrived", "acknowledgements", "Every message of the client arrives.";
    PAUSE = "pause", "", "Before its last message, the client is idle for the duration that the case specifies.";
    KEPT_OPEN = "kept-open", "keeping-and-closing-it", "Neither peer closes an idle connection.";
    KEPT_ALIVE = "kept-alive", "keeping-and-closing-it", "Both peers send datagrams on an idle connection.";
    PING_ANSWERED = "ping-answered", "pings", "A connected ping is answered by a pong that returns its time.";
    ECHOED = "echoed", "", "Every message is echoed.";
    TOUCHED = "touched", "", "The proxy dropped, delayed or duplicated a message from each peer. Otherwise the case tests nothing.";
    ACKED = "acked", "acknowledgements", "Every reliable message that arrives is acknowledged.";
    GOODBYE = "goodbye", "keeping-and-closing-it", "The client closes its connection with message 15 (disconnection notification).";
    GOODBYE_ACKED = "goodbye-acked", "keeping-and-closing-it", "The server acknowledges message 15.";
    SILENCE = "silence", "keeping-and-closing-it", "After it has acknowledged message 15, the server sends only acknowledgements.";
    READABLE = "readable", "datagrams", "Every datagram is an offline message, or a datagram of a connection that can be decoded completely.";
    ECHO_KIND = "echo-kind", "capsules", "The echoes of the server have the reliability of the case.";
    COOKIE = "cookie", "cookies", "If reply 1 contains a cookie, request 2 returns it.";
    MTU = "mtu", "connection-attempts", "No reply offers a larger MTU than its request.";
    FRESH_NUMBER = "fresh-number", "gaps", "Every datagram with messages has a new number, even if it carries retransmitted messages.";
    ACK_OF_SENT = "ack-of-sent", "acknowledgements", "Acknowledgements cover only datagrams that have arrived.";
    PONG = "pong", "unconnected-pings", "An unconnected ping is answered by a pong that returns its time.";
    ADVERTISEMENT = "advertisement", "offline-messages", "The pong contains 1 to 399 bytes of data.";
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
