//! The checks of pointers from C. Every pointer of a caller passes through one of these functions.
//!
//! They detect null pointers, misaligned structs, wrong sizes and unterminated strings. They cannot detect dangling pointers;
//! the safety sections state what the caller must guarantee.

use std::ffi::{c_char, c_int};
use std::mem::{align_of, size_of};
use std::ptr;

use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_BUFFER, RAKWIRE_ERROR_MISALIGNED,
    RAKWIRE_ERROR_NULL, RAKWIRE_ERROR_SIZE, RAKWIRE_ERROR_STRING, RAKWIRE_ERROR_TOO_LONG,
};

/// The maximum length of a string in bytes.
const LONGEST_STRING: usize = 1_024;

/// The number of bytes by which the struct of a newer program may exceed the struct of this library. A `size` beyond that was
/// probably never initialised.
const NEWER: usize = 128;

/// A struct of the C API that begins with its `size`.
///
/// # Safety
/// The struct is `repr(C)`, begins with a `u32`, and is valid for every bit pattern, as integers, raw pointers and
/// arrays of them are.
pub(crate) unsafe trait Versioned: Copy {
    /// The size in bytes of the first version of the struct.
    const FIRST_SIZE: usize;

    /// Returns the struct with all bits zero.
    fn zeroed() -> Self {
        // SAFETY: by the contract of the trait, every bit pattern is valid.
        unsafe { std::mem::zeroed() }
    }
}

fn check_aligned<T>(pointer: *const T) -> Outcome<()> {
    if pointer.is_null() {
        Err(Failure::new(RAKWIRE_ERROR_NULL))
    } else if !pointer.is_aligned() {
        Err(Failure::new(RAKWIRE_ERROR_MISALIGNED))
    } else {
        Ok(())
    }
}

/// Reads and checks the `size` of a caller's struct.
///
/// # Safety
/// `from` is null, or points to at least a `u32`.
unsafe fn caller_size<T: Versioned>(from: *const T) -> Outcome<usize> {
    check_aligned(from)?;
    // SAFETY: the pointer is aligned and not null, and by the contract of the trait the struct begins with a `u32`.
    let size = unsafe { from.cast::<u32>().read() };
    check_size::<T>(size)
}

fn check_size<T: Versioned>(size: u32) -> Outcome<usize> {
    let size = size as usize;
    let is_known = (T::FIRST_SIZE..=size_of::<T>() + NEWER).contains(&size);
    // The size of every version is a multiple of its alignment.
    let is_known = is_known && size.is_multiple_of(align_of::<T>());
    if is_known { Ok(size) } else { Err(Failure::new(RAKWIRE_ERROR_SIZE)) }
}

/// Reads a caller's struct like [`read_struct_over`], with zero for fields that an older caller does not have.
///
/// # Safety
/// `from` is null, or points to `size` bytes.
pub(crate) unsafe fn read_struct<T: Versioned>(from: *const T) -> Outcome<T> {
    // SAFETY: required of the caller of this function.
    unsafe { read_struct_over(from, T::zeroed()) }
}

/// Reads a caller's struct, which may be of an older or newer version than this library. Fields that an older caller does not
/// have keep the values in `value`. A newer caller must leave fields that this library does not know at zero.
///
/// # Safety
/// `from` is null, or points to `size` bytes.
pub(crate) unsafe fn read_struct_over<T: Versioned>(from: *const T, mut value: T) -> Outcome<T> {
    // SAFETY: required of the caller of this function.
    let size = unsafe { caller_size(from) }?;
    let known = size.min(size_of::<T>());
    // SAFETY: `from` points to `size` bytes, and `value` has at least `known` bytes. They do not overlap.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), known) };
    for at in known..size {
        // SAFETY: `at` is within the caller's `size` bytes.
        if unsafe { from.cast::<u8>().add(at).read() } != 0 {
            return Err(Failure::with(
                RAKWIRE_ERROR_SIZE,
                "the struct has fields that this version of the library does not know",
            ));
        }
    }
    Ok(value)
}

/// Returns a checked pointer to a caller's struct, which has at least the fields of the first version.
///
/// # Safety
/// `from` is null, or points to at least a `u32`.
pub(crate) unsafe fn checked_struct<T: Versioned>(from: *const T) -> Outcome<*const T> {
    // SAFETY: required of the caller of this function.
    unsafe { caller_size(from) }.map(|_| from)
}

/// Writes a struct to the caller up to the caller's `size`. The `size` field and the fields that only a newer caller has are not
/// changed.
///
/// # Safety
/// `to` is null, or points to `size` writable bytes.
pub(crate) unsafe fn write_struct<T: Versioned>(to: *mut T, value: &T) -> Outcome<()> {
    // SAFETY: required of the caller of this function.
    let size = unsafe { caller_size(to) }?;
    // SAFETY: as above.
    unsafe { write_fields(to, value, size) };
    Ok(())
}

/// Borrows a caller's struct with all fields of this library except `size` zeroed. Returns `None` if the caller's version has
/// fewer fields than this library's. It avoids a copy of the struct, which matters for events.
///
/// # Safety
/// `to` is null, or points to `size` writable bytes, which nothing else uses for `'a`.
pub(crate) unsafe fn zeroed_struct<'a, T: Versioned>(to: *mut T) -> Outcome<Option<&'a mut T>> {
    // SAFETY: required of the caller of this function.
    let size = unsafe { caller_size(to) }?;
    if size < size_of::<T>() {
        return Ok(None);
    }
    let (first, known) = (size_of::<u32>(), size_of::<T>());
    // SAFETY: `to` points to `size` bytes, at least the size of `T`, which is valid for every bit pattern. The pointer
    // is aligned and not null.
    unsafe {
        // A length known at compile time needs no call to memset.
        ptr::write_bytes(to.cast::<u8>().add(first), 0, known - first);
        Ok(Some(&mut *to))
    }
}

/// A caller's array of structs, of which each has the `size` of the first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructArray<T> {
    first: *mut T,
    size: u32,
}

impl<T: Versioned> StructArray<T> {
    /// Checks the first struct of an array.
    ///
    /// # Safety
    /// `first` is null, or points to `count` times `size` writable bytes, where `size` is that of the first struct.
    pub(crate) unsafe fn new(first: *mut T, count: usize) -> Outcome<Self> {
        // SAFETY: required of the caller of this function.
        let size = unsafe { caller_size(first) }?;
        if count.checked_mul(size).is_none_or(|length| isize::try_from(length).is_err()) {
            return Err(Failure::with(
                RAKWIRE_ERROR_ARGUMENT,
                "the array exceeds any object; was its length negative?",
            ));
        }
        Ok(Self { first, size: size as u32 })
    }

    /// Returns the place of a struct.
    ///
    /// # Safety
    /// The array has more than `at` structs.
    pub(crate) unsafe fn place(self, at: usize) -> *mut T {
        // SAFETY: the place is in the array. It is aligned, because `size` is a multiple of the alignment.
        unsafe { self.first.byte_add(at * self.size as usize) }
    }

    /// Returns the place of a struct, after setting the `size` of the struct.
    ///
    /// # Safety
    /// The array has more than `at` structs.
    pub(crate) unsafe fn sized_place(self, at: usize) -> *mut T {
        // SAFETY: required of the caller of this function; the struct begins with its `size`.
        unsafe {
            let place = self.place(at);
            place.cast::<u32>().write(self.size);
            place
        }
    }
}

/// Initialises a caller's struct, and sets its `size` to `size`. Fields that only a newer caller has become zero.
///
/// # Safety
/// `to` is null, or points to `size` writable bytes.
pub(crate) unsafe fn init_struct<T: Versioned>(to: *mut T, value: &T, size: usize) -> Outcome<()> {
    check_aligned(to)?;
    let size = u32::try_from(size).map_err(|_| Failure::new(RAKWIRE_ERROR_SIZE))?;
    let whole = check_size::<T>(size)?;
    let known = whole.min(size_of::<T>());
    // SAFETY: the pointer is aligned and points to `size` bytes, of which the first four are the `u32`. The size is an argument
    // of the call, and not a field that may be uninitialised.
    unsafe {
        to.cast::<u32>().write(size);
        write_fields(to, value, whole);
        ptr::write_bytes(to.cast::<u8>().add(known), 0, whole - known);
    }
    Ok(())
}

/// Writes the fields after `size` that both the caller and this library know.
///
/// # Safety
/// `to` points to `size` writable bytes, at least four.
unsafe fn write_fields<T: Versioned>(to: *mut T, value: &T, size: usize) {
    let first = size_of::<u32>();
    let known = size.min(size_of::<T>());
    let (from, to) = (ptr::from_ref(value).cast::<u8>(), to.cast::<u8>());
    // SAFETY: both have at least `known` bytes and do not overlap. `first` is not greater, as every struct has a `u32`.
    unsafe { ptr::copy_nonoverlapping(from.add(first), to.add(first), known - first) };
}

/// Borrows bytes of the caller. A null pointer is allowed if the length is 0.
///
/// # Safety
/// `data` is null, or points to `length` readable bytes that do not change during the call.
pub(crate) unsafe fn bytes<'a>(data: *const u8, length: usize) -> Outcome<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::new(RAKWIRE_ERROR_NULL));
    }
    if isize::try_from(length).is_err() {
        return Err(Failure::with(RAKWIRE_ERROR_TOO_LONG, "the length exceeds any object; was it negative?"));
    }
    // SAFETY: the pointer is not null, and points to `length` readable bytes by the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(data, length) })
}

/// Borrows a caller's string; `None` for a null pointer.
///
/// # Safety
/// `text` is null, or points to bytes that are readable up to the first zero byte, or to 1,025 readable bytes.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Outcome<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    let start = text.cast::<u8>();
    // SAFETY: bytes are read in order, up to the first zero byte.
    let is_end = |at: &usize| unsafe { start.add(*at).read() } == 0;
    let length = (0..=LONGEST_STRING).find(is_end).ok_or(Failure::new(RAKWIRE_ERROR_STRING))?;
    // SAFETY: this many bytes were just read.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) };
    std::str::from_utf8(bytes).map(Some).map_err(|_| Failure::new(RAKWIRE_ERROR_STRING))
}

/// Like [`text`], for a required string.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn needed_text<'a>(pointer: *const c_char) -> Outcome<&'a str> {
    // SAFETY: required of the caller of this function.
    unsafe { text(pointer) }?.ok_or(Failure::new(RAKWIRE_ERROR_NULL))
}

/// Checks a pointer for a result before the call has any effect, so that an error loses no event.
pub(crate) fn check_out<T>(to: *mut T) -> Outcome<()> {
    check_aligned(to)
}

/// Stores a result for the caller. A null pointer means that the caller does not want it.
///
/// # Safety
/// `to` is null, or points to a writable `T`.
pub(crate) unsafe fn store<T>(to: *mut T, value: T) -> Outcome<()> {
    if to.is_null() {
        return Ok(());
    }
    check_aligned(to)?;
    // SAFETY: the pointer is not null, is aligned, and is writable by the contract of this function.
    unsafe { to.write(value) };
    Ok(())
}

/// Copies bytes to a caller's buffer and stores their number. Writes nothing to a buffer that is too small.
///
/// # Safety
/// `buffer` is null or has `capacity` writable bytes, and `length` is null or writable.
pub(crate) unsafe fn fill(
    bytes: &[u8],
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Outcome<i32> {
    // SAFETY: required of the caller of this function.
    unsafe { store(length, bytes.len()) }?;
    if bytes.len() > capacity {
        return Err(Failure::new(RAKWIRE_ERROR_BUFFER));
    }
    if buffer.is_null() && !bytes.is_empty() {
        return Err(Failure::new(RAKWIRE_ERROR_NULL));
    }
    if !bytes.is_empty() {
        // SAFETY: the buffer is not null and has `capacity` bytes, at least as many as are copied.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
    }
    Ok(0)
}

/// Converts 0 or 1 to a `bool`; fails for other values.
pub(crate) fn flag(value: u8, name: &str) -> Outcome<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::with(RAKWIRE_ERROR_ARGUMENT, format_args!("{name} must be 0 or 1"))),
    }
}

/// Converts a count to a non-negative result, saturating.
pub(crate) fn count(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// Returns true if the `size` field of a struct is at offset 0; for assertions at compile time.
pub(crate) const fn begins_with_size(offset: usize) -> bool {
    offset == 0
}

macro_rules! versioned {
    ($($name:ty, $first:expr;)*) => {
        $(
            const _: () = assert!($crate::memory::begins_with_size(std::mem::offset_of!($name, size)));
            // SAFETY: the struct is repr(C), begins with `size: u32`, and has only integers, raw pointers and arrays of these.
            unsafe impl $crate::memory::Versioned for $name {
                const FIRST_SIZE: usize = $first;
            }
        )*
    };
}
pub(crate) use versioned;

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Old {
        size: u32,
        first: u32,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct New {
        size: u32,
        first: u32,
        second: u64,
    }

    versioned! {
        Old, 8;
        New, 8;
    }

    const _: () = assert!(offset_of!(New, second) == 8);

    #[test]
    fn an_older_caller_exchanges_only_its_known_fields() {
        let mut old = [Old { size: 8, first: 3 }, Old { size: 77, first: 78 }];
        let place = old.as_mut_ptr().cast::<New>();
        // SAFETY: `size` is the actual size. The array of eight bytes is aligned like a `u64`, or refused.
        let read = unsafe { read_struct(place) };
        if !place.is_aligned() {
            assert_eq!(read.err().map(|failure| failure.code), Some(RAKWIRE_ERROR_MISALIGNED));
            return;
        }
        assert_eq!(read.ok(), Some(New { size: 8, first: 3, second: 0 }));
        // SAFETY: as above.
        unsafe { write_struct(place, &New { size: 0, first: 5, second: 6 }) }.expect("a size that is known");
        assert_eq!(old, [Old { size: 8, first: 5 }, Old { size: 77, first: 78 }]);
    }

    #[test]
    fn unknown_fields_of_a_newer_caller_must_be_zero() {
        let mut new = New { size: 16, first: 1, second: 0 };
        let place = (&raw mut new).cast::<Old>();
        // SAFETY: `size` is the actual size of the memory.
        let read = unsafe { read_struct(place) };
        assert_eq!(read.ok(), Some(Old { size: 16, first: 1 }));
        new.second = 1 << 40;
        let place = (&raw mut new).cast::<Old>();
        // SAFETY: as above.
        let refused = unsafe { read_struct(place) };
        assert_eq!(refused.err().map(|failure| failure.code), Some(RAKWIRE_ERROR_SIZE));
        // SAFETY: as above.
        unsafe { write_struct(place, &Old { size: 0, first: 9 }) }.expect("a known size");
        assert_eq!(
            new,
            New { size: 16, first: 9, second: 1 << 40 },
            "fields that the library does not know must not change"
        );
    }

    #[test]
    fn a_borrowed_struct_is_zeroed_unless_the_caller_has_fewer_fields() {
        let mut new = New { size: 16, first: 7, second: 8 };
        // SAFETY: `size` is the actual size of the memory.
        let lent = unsafe { zeroed_struct(&raw mut new) }.expect("a known size");
        assert_eq!(lent, Some(&mut New { size: 16, first: 0, second: 0 }));
        let mut new = New { size: 8, first: 7, second: 8 };
        // SAFETY: as above.
        let lent = unsafe { zeroed_struct(&raw mut new) }.expect("the size of the first version");
        assert_eq!((lent, new), (None, New { size: 8, first: 7, second: 8 }));
    }

    #[test]
    fn bytes_beyond_the_known_fields_are_zeroed_only_if_the_size_is_an_argument() {
        let mut memory = [u64::MAX; 4];
        let place = memory.as_mut_ptr().cast::<New>();
        memory[0] = 24;
        // SAFETY: the memory has more than the 24 bytes of its size.
        let lent = unsafe { zeroed_struct(place) }.expect("the size of a newer version");
        assert_eq!(lent.copied(), Some(New { size: 24, first: 0, second: 0 }));
        assert_eq!(memory, [24, 0, u64::MAX, u64::MAX]);
        let place = memory.as_mut_ptr().cast::<New>();
        // SAFETY: as above.
        unsafe { init_struct(place, &New { size: 0, first: 0, second: 5 }, 24) }.expect("as above");
        assert_eq!(memory, [24, 5, 0, u64::MAX]);
    }

    #[test]
    fn an_unterminated_string_is_refused() {
        let endless = [b'x'; LONGEST_STRING + 1];
        // SAFETY: exactly as many bytes exist as may be read.
        let refused = unsafe { text(endless.as_ptr().cast()) };
        assert_eq!(refused.err().map(|failure| failure.code), Some(RAKWIRE_ERROR_STRING));
    }

    #[test]
    fn structs_with_an_unknown_size_are_refused() {
        let (known, newer) = (size_of::<New>() as u32, (size_of::<New>() + NEWER) as u32);
        let align = align_of::<New>() as u32;
        for size in [0, 4, 7, known - 1, known + 1, newer + align, 3_000, u32::MAX] {
            let mut new = New { size, first: 0, second: 0 };
            // SAFETY: the size is refused before any byte beyond it is written.
            let refused = unsafe { zeroed_struct(&raw mut new) };
            assert_eq!(refused.err().map(|failure| failure.code), Some(RAKWIRE_ERROR_SIZE), "{size}");
            // SAFETY: the size is refused before any byte beyond it is read.
            let refused = unsafe { read_struct(&raw const new) };
            assert_eq!(refused.err().map(|failure| failure.code), Some(RAKWIRE_ERROR_SIZE), "{size}");
        }
    }
}
