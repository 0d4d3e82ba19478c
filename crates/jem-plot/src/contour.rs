//! Lines of equal value through a grid of numbers, by marching squares.

/// A straight piece of a contour line, in columns and rows of the grid.
pub(super) type Segment = [(f64, f64); 2];

/// The pieces of the line where the bilinear surface through `value(column, row)` equals `level`.
///
/// Squares with a corner that is not finite are left out. In a saddle the pieces are joined so that the
/// middle of the square lies on the side of its mean.
pub(super) fn segments(
    [columns, rows]: [usize; 2],
    level: f64,
    value: impl Fn(usize, usize) -> f64,
) -> Vec<Segment> {
    let mut found = Vec::new();
    for row in 0..rows.saturating_sub(1) {
        for column in 0..columns.saturating_sub(1) {
            // Corners in a circle, so that neighbours in the list are neighbours in the square.
            let corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)];
            let values = corners.map(|(column, row)| value(column, row));
            if values.iter().any(|value| !value.is_finite()) {
                continue;
            }
            let above = values.map(|value| value >= level);
            let crossings: Vec<(f64, f64)> = (0..4)
                .filter(|side| above[*side] != above[(side + 1) % 4])
                .map(|side| {
                    let (a, b) = (corners[side], corners[(side + 1) % 4]);
                    let part = (level - values[side]) / (values[(side + 1) % 4] - values[side]);
                    let between = |a: usize, b: usize| a as f64 + (b as f64 - a as f64) * part;
                    (between(a.0, b.0), between(a.1, b.1))
                })
                .collect();
            match crossings[..] {
                [a, b] => found.push([a, b]),
                [a, b, c, d] => {
                    // Side 0 touches corners 0 and 1; a line from side 0 to side 1 cuts corner 1 off.
                    let middle = values.iter().sum::<f64>() / 4.0 >= level;
                    let pairs = if middle == above[0] { [[a, b], [c, d]] } else { [[a, d], [b, c]] };
                    found.extend(pairs);
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_is_closed() {
        let distance = |column: usize, row: usize| (column as f64 - 10.0).hypot(row as f64 - 10.0);
        let pieces = segments([21, 21], 6.0, distance);
        let length: f64 = pieces.iter().map(|[a, b]| (a.0 - b.0).hypot(a.1 - b.1)).sum();
        assert!((length - 12.0 * std::f64::consts::PI).abs() < 0.4, "{length}");
        for [a, b] in &pieces {
            for point in [a, b] {
                assert!(((point.0 - 10.0).hypot(point.1 - 10.0) - 6.0).abs() < 0.05);
                let ends = pieces
                    .iter()
                    .flatten()
                    .filter(|other| (other.0 - point.0).hypot(other.1 - point.1) < 1e-9);
                assert_eq!(ends.count(), 2);
            }
        }
    }

    #[test]
    fn saddles_are_joined_through_the_middle_and_broken_squares_are_skipped() {
        // High at two opposite corners and a high mean: the low corners are cut off.
        let saddle = |column: usize, row: usize| if column == row { 1.0 } else { 0.2 };
        let pieces = segments([2, 2], 0.5, saddle);
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|[a, b]| (a.0 + b.0) / 2.0 > 0.75 || (a.1 + b.1) / 2.0 > 0.75));
        assert!(segments([2, 2], 0.5, |column, _| if column == 0 { f64::NAN } else { 1.0 }).is_empty());
        assert!(segments([0, 0], 0.5, |_, _| 0.0).is_empty() && segments([5, 5], 0.0, |_, _| 0.0).is_empty());
    }
}
