//! The allocator of the npm package: smaller than the standard one, for a module that allocates little and seldom.

#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();
