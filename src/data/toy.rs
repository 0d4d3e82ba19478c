//! Labelled distributions in the plane that show at a glance what a density model has learnt.

use std::f64::consts::{PI, TAU};
use std::str::FromStr;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

use super::VectorSet;
use crate::error::{Error, Result, ensure};

/// A distribution of labelled points in the plane, all within about [-4, 4]².
///
/// ```
/// use jem_core::data::Toy;
/// use jem_core::noise::{Noise, Stream};
/// let moons = "two_moons".parse::<Toy>()?.sample(500, Noise::host(1).rng(Stream::DATA))?;
/// assert_eq!((moons.len(), moons.dimension(), moons.num_classes()), (500, 2, 2));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toy {
    /// Two half circles that reach into each other: two classes.
    TwoMoons,
    /// Three circles around the origin, one class each.
    Rings,
    /// The eight dark squares of a 4x4 board, uniform; the class is the parity of the row.
    Checkerboard,
    /// Five bent blades, one class each.
    Pinwheel,
    /// Two arms that wind around each other, one class each.
    Spirals,
    /// Eight Gaussians on a circle, one class each.
    Gaussians,
}

impl Toy {
    /// Every distribution.
    pub const ALL: [Toy; 6] =
        [Toy::TwoMoons, Toy::Rings, Toy::Checkerboard, Toy::Pinwheel, Toy::Spirals, Toy::Gaussians];

    /// The name that [`FromStr`] understands.
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoMoons => "two_moons",
            Self::Rings => "rings",
            Self::Checkerboard => "checkerboard",
            Self::Pinwheel => "pinwheel",
            Self::Spirals => "spirals",
            Self::Gaussians => "gaussians",
        }
    }

    /// How many classes.
    pub fn num_classes(self) -> usize {
        match self {
            Self::TwoMoons | Self::Checkerboard | Self::Spirals => 2,
            Self::Rings => 3,
            Self::Pinwheel => 5,
            Self::Gaussians => 8,
        }
    }

    /// `count` points, whose classes take turns so that they are as balanced as can be.
    ///
    /// # Errors
    /// [`Error::Config`] if `count` is 0.
    pub fn sample(self, count: usize, rng: &mut impl Rng) -> Result<VectorSet> {
        ensure(count > 0, "Toy.sample.count", count, "above 0")?;
        let labels: Vec<usize> = (0..count).map(|i| i % self.num_classes()).collect();
        let mut values = Vec::with_capacity(2 * count);
        for &label in &labels {
            values.extend(self.point(label, rng).map(|value| value as f32));
        }
        VectorSet::new(self.name(), values, 2, labels, self.num_classes())
    }

    /// One point of a class.
    fn point(self, label: usize, rng: &mut impl Rng) -> [f64; 2] {
        let class = label as f64;
        let share = class / self.num_classes() as f64;
        match self {
            Self::TwoMoons => {
                let [x, y] = polar(1.0, PI * rng.random::<f64>());
                let [x, y] = if label == 0 { [x - 0.5, y - 0.25] } else { [0.5 - x, 0.25 - y] };
                jitter([2.0 * x, 2.0 * y], 0.1, rng)
            }
            Self::Rings => jitter(polar(1.0 + class, TAU * rng.random::<f64>()), 0.08, rng),
            Self::Checkerboard => {
                let row = 2 * rng.random_range(0..2) + label;
                let column = 2 * rng.random_range(0..2) + row % 2;
                let [x, y] = [column as f64 - 2.0, row as f64 - 2.0];
                [2.0 * (x + rng.random::<f64>()), 2.0 * (y + rng.random::<f64>())]
            }
            Self::Pinwheel => {
                let radius = 2.0 + 0.6 * normal(rng);
                let angle = TAU * share + 0.6 * radius;
                jitter(polar(radius, angle), 0.12, rng)
            }
            Self::Spirals => {
                let turn = rng.random::<f64>().sqrt(); // even along the arm
                jitter(polar(3.5 * turn, 1.5 * TAU * turn + TAU * share), 0.08, rng)
            }
            Self::Gaussians => jitter(polar(3.0, TAU * share), 0.3, rng),
        }
    }
}

impl FromStr for Toy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|toy| toy.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Toy::name).join(", ");
            Error::config("Toy", format!("{name:?}"), format!("one of {names}"))
        })
    }
}

fn polar(radius: f64, angle: f64) -> [f64; 2] {
    [radius * angle.cos(), radius * angle.sin()]
}

fn normal(rng: &mut impl Rng) -> f64 {
    rng.sample(StandardNormal)
}

fn jitter([x, y]: [f64; 2], deviation: f64, rng: &mut impl Rng) -> [f64; 2] {
    [x + deviation * normal(rng), y + deviation * normal(rng)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Noise, Stream};

    fn points(toy: Toy, count: usize) -> Vec<([f64; 2], usize)> {
        let set = toy.sample(count, &mut Noise::host(1).derived(Stream::DATA, 0)).unwrap();
        let pairs = set.values().chunks(2).map(|v| [f64::from(v[0]), f64::from(v[1])]);
        pairs.zip(set.labels().iter().copied()).collect()
    }

    #[test]
    fn all_are_balanced_bounded_named_and_repeatable() {
        for toy in Toy::ALL {
            let sample = points(toy, 1_200);
            assert_eq!(sample, points(toy, 1_200));
            for class in 0..toy.num_classes() {
                let members = sample.iter().filter(|(_, label)| *label == class).count();
                assert_eq!(members, 1_200 / toy.num_classes(), "{toy:?}");
            }
            assert!(sample.iter().all(|(p, _)| p[0].hypot(p[1]) < 6.0), "{toy:?}");
            assert_eq!(toy.name().parse::<Toy>().unwrap(), toy);
            assert_eq!(serde_json::to_string(&toy).unwrap(), format!("\"{}\"", toy.name()));
        }
        assert!("moon".parse::<Toy>().unwrap_err().to_string().contains("two_moons, rings"));
    }

    #[test]
    fn the_board_leaves_its_light_squares_empty() {
        for ([x, y], label) in points(Toy::Checkerboard, 2_000) {
            let (column, row) = ((x / 2.0).floor() as i64 + 2, (y / 2.0).floor() as i64 + 2);
            assert!((0..4).contains(&column) && (0..4).contains(&row), "{x} {y}");
            assert_eq!(((column + row) % 2, row % 2), (0, label as i64));
        }
    }

    #[test]
    fn rings_have_their_radii() {
        for ([x, y], label) in points(Toy::Rings, 3_000) {
            assert!((x.hypot(y) - 1.0 - label as f64).abs() < 0.5);
        }
    }
}
