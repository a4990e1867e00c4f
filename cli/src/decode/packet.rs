//! The structure of a datagram.

use rakwire::raknet::Reliability;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, MIN_CAPSULE, Record, VALID};
use rakwire::wire::local::Local;
use rakwire::wire::offline::Offline;
use rakwire::wire::{SecuritySizes, Source, Wire, WireError, address, id};

use super::fields::{Field, Malformed, Recorder};
use super::form::Form;
use super::message::Inner;

/// A decoded datagram, up to the first error.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) kind: &'static str,
    pub(crate) length: usize,
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) capsules: Vec<Capsule<'a>>,
    pub(crate) records: Vec<RecordFields<'a>>,
    /// The content of an out-of-band message, if RakNet defines its layout.
    pub(crate) inner: Option<Inner<'a>>,
    /// The bytes after the last known field.
    pub(crate) rest: Vec<Field<'a>>,
    /// The first error.
    pub(crate) error: Option<Malformed>,
}

/// A message or a part of a message.
#[derive(Debug)]
pub(crate) struct Capsule<'a> {
    pub(crate) offset: usize,
    /// `None` if the header cannot be read.
    pub(crate) reliability: Option<Reliability>,
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) payload: &'a [u8],
    /// The kind of message by its first byte; `None` in later parts of a split message.
    pub(crate) message: Option<&'static str>,
    /// The fields of a whole message, if RakNet defines its layout.
    pub(crate) control: Option<Vec<Field<'a>>>,
}

/// A run of datagram numbers in an acknowledgement.
#[derive(Debug)]
pub(crate) struct RecordFields<'a> {
    pub(crate) record: Option<Record>,
    pub(crate) fields: Vec<Field<'a>>,
}

impl<'a> Packet<'a> {
    /// Decodes `bytes` with the parsers of the protocol.
    pub(crate) fn decode(bytes: &'a [u8], form: Form, sizes: &SecuritySizes) -> Self {
        let mut source = Recorder::new(bytes, 0);
        let mut packet = Self::new("empty", bytes);
        match (bytes.first(), form) {
            (None, _) => packet.error = Some(source.locate(WireError::Truncated)),
            (Some(first), Form::Message) => packet.read_message(bytes, *first, sizes),
            (Some(first), Form::Event) => packet.read_event(&mut source, *first),
            (Some(_), Form::Address) => packet.read_address(&mut source),
            (Some(first), Form::Datagram) if first & VALID == 0 => {
                packet.read_offline(&mut source, *first, sizes);
            }
            (Some(_), Form::Datagram) => packet.read_connected(&mut source, sizes),
        }
        packet.rest = source.fields();
        packet
    }

    /// Creates the packet of a sealed datagram for which there is no key.
    pub(crate) fn sealed(bytes: &'a [u8]) -> Self {
        let mut packet = Self::new("sealed", bytes);
        let mut source = Recorder::new(bytes, 0);
        source.rest("sealed bytes");
        packet.fields = source.fields();
        packet
    }

    const fn new(kind: &'static str, bytes: &[u8]) -> Self {
        Self {
            kind,
            length: bytes.len(),
            fields: Vec::new(),
            capsules: Vec::new(),
            records: Vec::new(),
            inner: None,
            rest: Vec::new(),
            error: None,
        }
    }

    fn read_message(&mut self, bytes: &'a [u8], first: u8, sizes: &SecuritySizes) {
        self.kind = id::name(first);
        match Inner::read(bytes, 0, None, sizes) {
            Some((inner, error)) => {
                self.fields = inner.fields;
                self.error = error;
            }
            None => {
                let mut source = Recorder::new(bytes, 0);
                source.rest("message");
                self.fields = source.fields();
            }
        }
    }

    fn read_event(&mut self, source: &mut Recorder<'a>, first: u8) {
        self.kind = id::name(first);
        self.error = Local::read(source).err().map(|error| source.locate(error));
        self.fields = source.fields();
        self.read_rest(source);
    }

    fn read_address(&mut self, source: &mut Recorder<'a>) {
        self.kind = "address";
        self.error = address::read(source, "address").err().map(|error| source.locate(error));
        self.fields = source.fields();
        self.read_rest(source);
    }

    fn read_rest(&self, source: &mut Recorder<'a>) {
        if self.error.is_none() && source.remaining() > 0 {
            source.rest("bytes after the message");
        }
    }

    fn read_offline(&mut self, source: &mut Recorder<'a>, first: u8, sizes: &SecuritySizes) {
        self.kind = id::name(first);
        let read = Offline::read_with(source, sizes);
        self.error = read.err().map(|error| source.locate(error));
        if let Ok(Offline::OutOfBand { data: data @ [id::ADVERTISE_SYSTEM, ..], .. }) = read {
            self.inner = Inner::read(data, self.length - data.len(), None, sizes).map(|(inner, _)| inner);
        }
        self.fields = source.fields();
        self.read_rest(source);
    }

    fn read_connected(&mut self, source: &mut Recorder<'a>, sizes: &SecuritySizes) {
        let header = DatagramHeader::read(source);
        self.error = header.err().map(|error| source.locate(error));
        self.fields = source.fields();
        match header {
            Ok(DatagramHeader::Data { .. }) => {
                self.kind = "data";
                self.read_capsules(source, sizes);
            }
            Ok(DatagramHeader::Ack { records, .. }) => {
                self.kind = "acknowledgement";
                self.read_records(source, records);
            }
            Ok(DatagramHeader::Nack { records }) => {
                self.kind = "negative acknowledgement";
                self.read_records(source, records);
            }
            Err(_) => self.kind = "datagram of a connection",
        }
    }

    fn read_records(&mut self, source: &mut Recorder<'a>, count: u16) {
        for _ in 0..count {
            let record = Record::read(source);
            let error = record.err().map(|error| source.locate(error));
            let record = record.ok();
            let fields = source.fields();
            if record.is_some() || !fields.is_empty() {
                self.records.push(RecordFields { record, fields });
            }
            if error.is_some() {
                self.error = error;
                return;
            }
        }
        if source.remaining() > 0 {
            source.rest("bytes after the records");
        }
    }

    fn read_capsules(&mut self, source: &mut Recorder<'a>, sizes: &SecuritySizes) {
        // Zeros after the last capsule are padding, and so is a rest that is too short for a capsule.
        while source.remaining() >= MIN_CAPSULE && source.peek().iter().any(|byte| *byte != 0) {
            if !self.read_capsule(source, sizes) {
                return;
            }
        }
        if source.remaining() > 0 {
            source.rest("padding");
        }
    }

    /// Reads a capsule. Returns false if nothing after it can be read.
    fn read_capsule(&mut self, source: &mut Recorder<'a>, sizes: &SecuritySizes) -> bool {
        let mut capsule = Capsule {
            offset: source.offset(),
            reliability: None,
            fields: Vec::new(),
            payload: &[],
            message: None,
            control: None,
        };
        let read = CapsuleHeader::read(source);
        let mut error = read.err().map(|error| source.locate(error));
        capsule.fields = source.fields();
        if let Ok(header) = read {
            capsule.reliability = Some(header.reliability);
            let missing = header.length().saturating_sub(source.remaining());
            if missing > 0 {
                error = Some(Malformed {
                    offset: source.offset(),
                    message: format!("the payload ends {missing} bytes early"),
                });
            }
            let start = source.offset();
            capsule.payload = source.bytes("payload", header.length() - missing).unwrap_or(&[]);
            capsule.fields.extend(source.fields());
            let is_first = header.split.is_none_or(|split| split.index == 0);
            let first = capsule.payload.first().filter(|_| is_first);
            capsule.message = first.map(|first| id::name(*first));
            let is_whole = header.split.is_none() && missing == 0;
            let inner =
                if is_whole { Inner::read(capsule.payload, start, Some(header.bits), sizes) } else { None };
            if let Some((inner, malformed)) = inner {
                capsule.message = Some(inner.kind);
                capsule.control = Some(inner.fields);
                self.error = self.error.take().or(malformed);
            }
        }
        self.capsules.push(capsule);
        let can_continue = error.is_none();
        self.error = self.error.take().or(error);
        can_continue
    }
}

/// Returns the name of a reliability as RakNet's documents use it.
pub(crate) const fn reliability_name(reliability: Reliability) -> &'static str {
    match reliability {
        Reliability::Unreliable => "unreliable",
        Reliability::UnreliableSequenced => "unreliable sequenced",
        Reliability::Reliable => "reliable",
        Reliability::ReliableOrdered => "reliable ordered",
        Reliability::ReliableSequenced => "reliable sequenced",
        Reliability::UnreliableWithReceipt => "unreliable with receipt",
        Reliability::ReliableWithReceipt => "reliable with receipt",
        Reliability::ReliableOrderedWithReceipt => "reliable ordered with receipt",
    }
}
