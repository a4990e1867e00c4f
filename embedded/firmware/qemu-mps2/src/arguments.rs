//! The arguments of the program: words of the form `name=value` that QEMU passes by semihosting.

use core::str::FromStr;

use heapless::String;

/// The maximum length of all arguments together, in bytes.
const LONGEST: usize = 512;

/// The arguments of the program.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// All words, each followed by a space.
    text: String<LONGEST>,
}

impl Arguments {
    /// Reads the arguments from QEMU.
    #[must_use]
    pub fn read() -> Self {
        let mut text = String::new();
        if let Ok(arguments) = semihosting::experimental::env::args::<LONGEST>() {
            for word in (&arguments).into_iter().filter_map(Result::ok) {
                // This cannot fail: the words come from a buffer of the same size, in which a zero follows each word.
                let _ = text.push_str(word).and_then(|()| text.push(' '));
            }
        }
        Self { text }
    }

    /// Returns the value of an argument if it exists and is valid.
    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.values(name).find_map(|value| value.parse().ok())
    }

    /// Returns whether an argument has this value.
    #[must_use]
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.values(name).any(|found| found == value)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.text.split(' ').filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
    }
}
