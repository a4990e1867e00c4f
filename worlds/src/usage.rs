//! The blocks, connections and flows in use, sampled during a part of a world's time.

/// The sums and the maximum of the samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// The number of samples.
    notes: u64,
    blocks: u64,
    connections: u64,
    flows: u64,
    pub(crate) most_blocks: usize,
}

impl Usage {
    /// Adds a sample: the blocks in use by all peers, the connections of the server, and the flows of relay and front.
    pub(crate) fn note(&mut self, blocks: usize, connections: usize, flows: usize) {
        self.notes += 1;
        self.blocks += blocks as u64;
        self.connections += connections as u64;
        self.flows += flows as u64;
        self.most_blocks = self.most_blocks.max(blocks);
    }

    /// Returns the mean numbers of blocks, connections and flows.
    pub(crate) const fn means(&self) -> [u64; 3] {
        let notes = if self.notes == 0 { 1 } else { self.notes };
        [self.blocks / notes, self.connections / notes, self.flows / notes]
    }
}
