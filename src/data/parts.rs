//! Parts of a set of images: chosen, the first of each class, drawn at random, some classes alone.

use super::{ImageSet, select};
use crate::error::{Error, Result, ensure};

impl ImageSet {
    /// The images at `indices`, in that order.
    ///
    /// # Errors
    /// [`Error::Config`] if an index is not below [`len`](Self::len).
    pub fn subset(&self, indices: &[usize]) -> Result<Self> {
        if let Some(&index) = indices.iter().find(|index| **index >= self.len()) {
            return Err(self.no_such_image(index));
        }
        Ok(self.view(indices))
    }

    /// The first `count` images of every class, in their order.
    ///
    /// # Errors
    /// [`Error::Config`] if a class has fewer.
    pub fn take_per_class(&self, count: usize) -> Result<Self> {
        Ok(self.view(&select::first_per_class(self.name(), &self.labels, self.num_classes, count)?))
    }

    /// Two parts, the first with `fraction` of every class (rounded) drawn at random, each in the set's order.
    ///
    /// # Errors
    /// [`Error::Config`] unless `fraction` is in \[0, 1\].
    pub fn split_fraction(&self, fraction: f64, rng: &mut impl rand::Rng) -> Result<(Self, Self)> {
        let allowed = (0.0..=1.0).contains(&fraction);
        ensure(allowed, "ImageSet.split_fraction.fraction", fraction, "in [0, 1]")?;
        let share = |available: usize| (available as f64 * fraction).round() as usize;
        let (chosen, rest) = select::stratified(&self.labels, self.num_classes, share, rng);
        Ok((self.view(&chosen), self.view(&rest)))
    }

    /// Two parts, the first with `count` images of every class drawn at random, each in the set's order.
    ///
    /// # Errors
    /// [`Error::Config`] if a class has fewer.
    pub fn split_per_class(&self, count: usize, rng: &mut impl rand::Rng) -> Result<(Self, Self)> {
        select::first_per_class(self.name(), &self.labels, self.num_classes, count)?;
        let (chosen, rest) = select::stratified(&self.labels, self.num_classes, |_| count, rng);
        Ok((self.view(&chosen), self.view(&rest)))
    }

    /// Share `rank` of `of`: every `of`-th image, the same number for each, the last few left out.
    ///
    /// # Errors
    /// [`Error::Config`] unless `rank` is below `of`.
    pub fn share(&self, rank: usize, of: usize) -> Result<Self> {
        Ok(self.view(&select::share("ImageSet", self.len(), rank, of)?))
    }

    /// The images of `classes` alone, which become the classes 0, 1, … in the order given.
    ///
    /// # Errors
    /// [`Error::Config`] if `classes` is empty, or one of them comes twice or does not exist.
    pub fn classes(&self, classes: &[usize]) -> Result<Self> {
        let mut renamed = vec![None; self.num_classes];
        for (new, &old) in classes.iter().enumerate() {
            let slot = renamed.get_mut(old).filter(|slot| slot.is_none()).ok_or_else(|| {
                let allowed = format!("different classes below {}", self.num_classes);
                Error::config("ImageSet.classes", format!("{classes:?}"), allowed)
            })?;
            *slot = Some(new);
        }
        ensure(!classes.is_empty(), "ImageSet.classes", "[]", "at least one class")?;
        let kept: Vec<usize> = (0..self.len()).filter(|&i| renamed[self.labels[i]].is_some()).collect();
        let mut part = self.view(&kept);
        part.labels = part.labels.iter().filter_map(|&old| renamed[old]).collect();
        part.num_classes = classes.len();
        part.class_names =
            self.class_names.as_ref().map(|names| classes.iter().map(|&old| names[old].clone()).collect());
        Ok(part)
    }

    /// The images at indices that are known to exist.
    fn view(&self, indices: &[usize]) -> Self {
        let mut part = self.clone();
        part.rows = indices.iter().map(|&i| self.rows[i]).collect();
        part.labels = indices.iter().map(|&i| self.labels[i]).collect();
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Noise, Stream};

    /// n images of one channel and 2x3 whose bytes all equal their index, labels 0, 1, 2, 0, 1, …
    fn numbered(n: usize) -> ImageSet {
        let pixels: Vec<u8> = (0..n).flat_map(|i| [i as u8; 6]).collect();
        ImageSet::new("numbered", pixels, [1, 2, 3], (0..n).map(|i| i % 3).collect(), 3).unwrap()
    }

    fn numbers(set: &ImageSet) -> Vec<u8> {
        (0..set.len()).map(|i| set.bytes(&[i]).unwrap()[0]).collect()
    }

    #[test]
    fn parts_of_parts_keep_labels_and_pixels_together() {
        let set = numbered(12).with_class_names(["a", "b", "c"]).unwrap();
        let part = set.subset(&[10, 2, 5]).unwrap();
        assert_eq!((numbers(&part), part.labels()), (vec![10, 2, 5], &[1, 2, 2][..]));
        assert_eq!(numbers(&part.subset(&[2]).unwrap()), [5]);
        assert_eq!(numbers(&set.take_per_class(2).unwrap()), [0, 1, 2, 3, 4, 5]);
        let two = set.classes(&[2, 0]).unwrap();
        assert_eq!(numbers(&two), [0, 2, 3, 5, 6, 8, 9, 11]);
        assert_eq!(two.labels(), [1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!((two.num_classes(), two.class_names().unwrap()), (2, &["c".into(), "a".into()][..]));
    }

    #[test]
    fn shares_are_disjoint_and_of_one_size() {
        let set = numbered(11);
        let shares: Vec<Vec<u8>> = (0..3).map(|rank| numbers(&set.share(rank, 3).unwrap())).collect();
        assert_eq!(shares, [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
        assert!(set.share(3, 3).unwrap_err().to_string().starts_with("ImageSet.share.rank = 3"));
    }

    #[test]
    fn splits_are_stratified_disjoint_whole_and_repeatable() {
        let set = numbered(30);
        let noise = Noise::host(4);
        let split = || set.split_fraction(0.3, &mut noise.derived(Stream::DATA, 0)).unwrap();
        let (a, b) = split();
        assert_eq!((a.class_counts(), b.class_counts()), (vec![3; 3], vec![7; 3]));
        let mut together = [numbers(&a), numbers(&b)].concat();
        assert!(numbers(&a).is_sorted() && numbers(&b).is_sorted());
        together.sort_unstable();
        assert_eq!(together, (0..30).collect::<Vec<u8>>());
        assert_eq!(numbers(&split().0), numbers(&a));
        let other = set.split_per_class(3, &mut noise.derived(Stream::DATA, 1)).unwrap().0;
        assert_ne!(numbers(&other), numbers(&a));
    }
}
