//! Files that use each other, directly or through others.

use std::collections::BTreeSet;

use super::tree::FileId;

/// The largest groups of files in which each one is reached from each other one, without groups of one.
///
/// A file belongs to the group of those that it reaches and that reach it. The crates are small enough to ask that for
/// every file by itself.
pub(super) fn find(files: usize, arrows: &BTreeSet<(FileId, FileId)>) -> Vec<BTreeSet<FileId>> {
    let reached: Vec<_> = (0..files).map(|file| reached_from(file, arrows)).collect();
    let mut groups = BTreeSet::new();
    for file in 0..files {
        let group: BTreeSet<_> =
            reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

/// The file itself and all to which arrows lead.
fn reached_from(file: FileId, arrows: &BTreeSet<(FileId, FileId)>) -> BTreeSet<FileId> {
    let mut reached = BTreeSet::from([file]);
    let mut next = vec![file];
    while let Some(from) = next.pop() {
        let targets = arrows.range((from, 0)..=(from, FileId::MAX)).map(|(_, to)| *to);
        next.extend(targets.filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_whole_and_apart() {
        let arrows = BTreeSet::from([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (4, 5)]);
        assert_eq!(find(6, &arrows), [BTreeSet::from([0, 1, 2]), BTreeSet::from([3, 4])]);
        assert!(find(6, &BTreeSet::from([(0, 1), (1, 2), (0, 2)])).is_empty());
    }
}
