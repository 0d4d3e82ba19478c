//! Which examples make up a part: the first of each class, a stratified draw, a permutation.

use rand::{Rng, RngExt};

use crate::error::{Error, Result, ensure};

/// `Ok` if every label is below `num_classes`.
pub(super) fn check_labels(kind: &str, labels: &[usize], num_classes: usize) -> Result<()> {
    match labels.iter().position(|label| *label >= num_classes) {
        None => Ok(()),
        Some(at) => Err(Error::config(
            format!("{kind}.labels[{at}]"),
            labels[at],
            format!("below the number of classes, {num_classes}"),
        )),
    }
}

/// Every `of`-th of `len` indices from `rank` on, as many for each rank.
pub(super) fn share(owner: &str, len: usize, rank: usize, of: usize) -> Result<Vec<usize>> {
    ensure(of > 0, &format!("{owner}.share.of"), of, "at least 1")?;
    ensure(rank < of, &format!("{owner}.share.rank"), rank, &format!("below the number of shares, {of}"))?;
    Ok((0..len / of).map(|index| index * of + rank).collect())
}

/// The indices of each class.
pub(super) fn by_class(labels: &[usize], num_classes: usize) -> Vec<Vec<usize>> {
    let mut classes = vec![Vec::new(); num_classes];
    for (index, &label) in labels.iter().enumerate() {
        classes[label].push(index);
    }
    classes
}

/// The first `count` indices of each class, ascending.
pub(super) fn first_per_class(
    name: &str,
    labels: &[usize],
    num_classes: usize,
    count: usize,
) -> Result<Vec<usize>> {
    let classes = by_class(labels, num_classes);
    if let Some((class, members)) = classes.iter().enumerate().find(|(_, members)| members.len() < count) {
        let allowed = format!("at most {}, as class {class} has no more", members.len());
        return Err(Error::config(format!("count per class of {name}"), count, allowed));
    }
    let mut chosen: Vec<usize> = classes.iter().flat_map(|members| &members[..count]).copied().collect();
    chosen.sort_unstable();
    Ok(chosen)
}

/// A random part with `share(members)` indices of each class, and the rest, both ascending.
pub(super) fn stratified(
    labels: &[usize],
    num_classes: usize,
    share: impl Fn(usize) -> usize,
    rng: &mut impl Rng,
) -> (Vec<usize>, Vec<usize>) {
    let (mut chosen, mut rest) = (Vec::new(), Vec::new());
    for mut members in by_class(labels, num_classes) {
        shuffle(&mut members, rng);
        let (here, there) = members.split_at(share(members.len()).min(members.len()));
        chosen.extend_from_slice(here);
        rest.extend_from_slice(there);
    }
    chosen.sort_unstable();
    rest.sort_unstable();
    (chosen, rest)
}

/// The Fisher-Yates shuffle, written out so that no update of a dependency changes the order of a run.
pub(super) fn shuffle(values: &mut [usize], rng: &mut impl Rng) {
    for i in (1..values.len()).rev() {
        values.swap(i, rng.random_range(0..=i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Noise, Stream};

    /// Each of the 6 orders of 3 is expected n/6 times; with n = 60,000 a count's standard deviation is
    /// sqrt(n 5/36) = 91, and 5 of them are alpha below 1e-5 for all six together.
    #[test]
    fn all_orders_are_equally_likely() {
        let mut noise = Noise::host(1);
        let mut counts = std::collections::BTreeMap::<[usize; 3], i64>::new();
        for _ in 0..60_000 {
            let mut values = [0, 1, 2];
            shuffle(&mut values, noise.rng(Stream::ORDER));
            *counts.entry(values).or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (count - 10_000).abs() < 5 * 91), "{counts:?}");
    }

    #[test]
    fn a_class_that_is_too_small_is_named() {
        let error = first_per_class("set", &[0, 1, 0], 2, 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "count per class of set = 2 is not allowed: it must be at most 1, as class 1 has no more"
        );
    }
}
