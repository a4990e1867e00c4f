//! What is behind a front.

use crate::front::FrontProtocol;
use crate::target::TargetName;

/// The target behind a front that runs. No reload changes it, nor what the front speaks.
#[derive(Debug, Clone)]
pub(crate) struct FrontTarget {
    pub(crate) name: TargetName,
    pub(crate) protocol: FrontProtocol,
}
