//! Voice: audio frames from each peer to all others, played at an even pace despite network jitter.
//!
//! A [`Voice`] takes encoded frames of a fixed duration, usually 20 ms, and sends them unreliably and sequenced. At the
//! receiver each speaker has a jitter buffer. It delays frames only as much as the jitter requires. It reports missing
//! frames, so the decoder can conceal them. When it has been too full for a long time, it skips a frame. The plugin does
//! not depend on a codec. Opus, the usual codec, is available with the feature `opus`. See `docs/plugins/voice.md`.
//!
//! ```
//! use rakwire::endpoint::{Hooked, PluginHost};
//! use rakwire::raknet::{Config, Peer, RakNet, Resources};
//! use rakwire::{Instant, Machine};
//! use rakwire_plugins::voice::{Playback, Voice, VoiceConfig};
//!
//! // Up to 8 peers, buffers of 16 frames of at most 160 bytes, and a message id of the application.
//! let voice = Voice::<8, 16, 160>::new(VoiceConfig::new(0x90));
//! let mut host = PluginHost::<_, 1>::new();
//! let key = host.attach::<RakNet>(voice)?;
//! let mut resources = Resources::<8, 64, 128>::new();
//! let mut peer = Hooked::new(Peer::new(&mut resources, Config::new([7; 32])), host);
//! let now = Instant::ZERO;
//!
//! // Every 20 ms during speech: the output of the microphone's encoder.
//! let voice = peer.hook.get_mut(key).ok_or("the plugin is not attached")?;
//! voice.talk(&[0xFC, 1, 2, 3])?;
//! peer.handle_timeout(now);
//!
//! // Every 20 ms, for the loudspeaker: a frame of each speaker.
//! let voice = peer.hook.get_mut(key).ok_or("the plugin is not attached")?;
//! let speakers: Vec<_> = voice.speakers().collect();
//! for speaker in speakers {
//!     match voice.play(now, speaker) {
//!         Playback::Frame(bytes) => println!("decode {} bytes", bytes.len()),
//!         Playback::Concealed => println!("let the decoder conceal a frame"),
//!         Playback::Silence => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod config;
#[cfg(feature = "opus")]
pub mod opus;
mod plugin;
mod wire;

pub use self::buffer::{Playback, SpeakerStats};
pub use self::config::{TalkError, VoiceConfig};
pub use self::plugin::{Voice, VoiceStats};
pub use self::wire::{HEADER_LEN, Header};
