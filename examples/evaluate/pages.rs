//! The table that is printed, and the pages of the report.

use jem_core::data::ImageSet;
use jem_core::error::Result;
use jem_eval::attack::Norm;
use jem_plot::{BarChart, Chart, Histogram, Report};
use serde_json::Value;

use crate::attacks::Curve;
use crate::detection::{Classification, DetectionTable};
use crate::samples::{ByClass, Chains, Distances};

/// All results.
pub struct Pages {
    pub classification: Classification,
    pub detection: DetectionTable,
    pub curves: Vec<Curve>,
    pub by_class: Option<ByClass>,
    pub distances: Option<Distances>,
    pub chains: Chains,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl Pages {
    /// The figures, by name.
    fn figures(&self) -> Vec<(String, String)> {
        let c = &self.classification;
        let mut figures = vec![
            ("Accuracy".to_owned(), format!("{} of {} images", percent(c.accuracy), c.images)),
            ("Negative log-likelihood".to_owned(), format!("{:.3} nats", c.negative_log_likelihood)),
            ("Brier score".to_owned(), format!("{:.3}", c.brier_score)),
            ("ECE, 20 bins of equal width".to_owned(), percent(c.ece_equal_width)),
            ("ECE, 20 bins of equal mass".to_owned(), percent(c.ece_equal_mass)),
            (
                "ECE after temperature scaling".to_owned(),
                match &c.scaled {
                    Ok(scaled) => {
                        let (after, before) = (percent(scaled.ece_after), percent(scaled.ece_before));
                        format!("{after}, from {before}, at T = {:.2}", scaled.temperature)
                    }
                    Err(reason) => format!("none: {reason}"),
                },
            ),
        ];
        for curve in &self.curves {
            let points: Vec<String> = curve
                .result
                .points
                .iter()
                .map(|point| {
                    format!("{} at {}", percent(point.accuracy), radius(curve.result.norm, point.epsilon))
                })
                .collect();
            let name = format!("Under attack in {}, {}", norm_name(curve.result.norm), curve.defence);
            let clean = percent(curve.result.clean_accuracy);
            let of = curve.result.broken_at.len();
            figures.push((name, format!("{clean} clean, {} ({of} images)", points.join(", "))));
        }
        if let Some(d) = &self.distances {
            figures.push((
                format!("Fréchet distance, in {}", d.features),
                format!("{:.3}; {:.3} between halves of the data", d.frechet, d.frechet_of_data),
            ));
            figures.push((
                "Kernel distance".to_owned(),
                format!("{:.4} ± {:.4}", d.kernel, d.kernel_standard_error),
            ));
            figures.push((
                "Inception Score by the model itself".to_owned(),
                format!("{:.2}", d.inception_score),
            ));
            figures.push(("Samples for these".to_owned(), d.origin.clone()));
        }
        let chains = &self.chains;
        figures.push((
            "Chains".to_owned(),
            format!(
                "R̂ of the energy {:.3}, {:.0} effective of {} draws",
                chains.rhat,
                chains.effective_sample_size,
                chains.chains * chains.steps.div_ceil(2)
            ),
        ));
        figures
    }

    /// Prints everything.
    pub fn print(&self) {
        let figures = self.figures();
        let width = figures.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in &figures {
            println!("{name:width$}  {value}");
        }
        println!("\n{:20} {:18} {:>7} {:>7} {:>7}", "against", "score", "AUROC", "AP", "FPR95");
        for row in &self.detection.rows {
            let (auroc, ap, fpr) = (row.auroc, row.average_precision, row.fpr95);
            println!("{:20} {:18} {auroc:7.3} {ap:7.3} {fpr:7.3}", row.set, row.score);
        }
    }

    /// The report.
    pub fn report(&self, identity: &Value, test: &ImageSet) -> Result<Report> {
        let mut report = Report::new("Evaluation").summary(&self.figures());
        report = self.calibration(report)?;
        report = self.elsewhere(report)?;
        report = self.robustness(report)?;
        report = self.samples(report, test)?;
        report = self.chain_curves(report)?;
        let settings = serde_json::to_string(identity).unwrap_or_default();
        Ok(report.section("What was evaluated", settings))
    }

    fn calibration(&self, report: Report) -> Result<Report> {
        let c = &self.classification;
        let chart = Chart::new("Reliability", "confidence", "accuracy")
            .with_y_range(0.0, 1.0)
            .with_series("right as often as sure", [(0.0, 0.0), (1.0, 1.0)])
            .with_series("test images", c.bins.iter().map(|bin| (bin.confidence, bin.accuracy)));
        let counts = BarChart::new("Images by confidence", "confidence up to", "images")
            .with_bars(c.bins.iter().map(|bin| (format!("{:.2}", bin.upper), bin.count as f64)));
        Ok(report
            .section(
                "Calibration",
                "Where the curve lies below the diagonal the model is surer than it is right.",
            )
            .svg(chart.to_svg()?, "Accuracy of the test images by the confidence that they were given.")
            .svg(counts.to_svg()?, "How many there are of each confidence."))
    }

    fn elsewhere(&self, report: Report) -> Result<Report> {
        let d = &self.detection;
        let mut histogram = Histogram::new("log p(x), up to a constant", "log p(x)").with_bins(40);
        for (name, values) in &d.log_density {
            histogram = histogram.with_values(name, values.iter().copied());
        }
        let mut roc =
            Chart::new("Test images against others, by confidence", "false positives", "true positives")
                .with_y_range(0.0, 1.0);
        for (name, points) in &d.roc {
            roc = roc.with_series(name, points.iter().map(|[x, y]| (*x, *y)));
        }
        let rows = d.rows.iter().map(|row| {
            let number = |value: f64| format!("{value:.3}");
            [
                row.set.clone(),
                row.images.to_string(),
                row.score.clone(),
                number(row.auroc),
                number(row.average_precision),
                number(row.fpr95),
            ]
        });
        Ok(report
            .section("Images from elsewhere", "An AUROC of 0.5 is no better than guessing, and below it the score prefers what the model has not seen. The test images are the positive class.")
            .table(&["against", "images", "score", "AUROC", "average precision", "FPR at 95 % TPR"], rows)
            .svg(histogram.to_svg()?, "log p(x) of every image, by set.")
            .svg(roc.to_svg()?, "ROC curves of the confidence, max p(y|x).")
            .section("", format!("A detector that flags {} of test images calls an image foreign if log p(x) is below {:.3}.", percent(d.detector.false_alarm_rate()), d.detector.threshold())))
    }

    fn robustness(&self, mut report: Report) -> Result<Report> {
        if self.curves.is_empty() {
            return Ok(report);
        }
        report = report.section(
            "Attacks",
            "Accuracy under projected gradient descent. An image that a smaller radius broke stays broken.",
        );
        for norm in [Norm::Linf, Norm::L2] {
            let label = match norm {
                Norm::Linf => "radius in L∞, 1/255",
                Norm::L2 => "radius in L2, on [0, 1] pixels",
            };
            let mut chart = Chart::new("Accuracy under attack", label, "accuracy").with_y_range(0.0, 1.0);
            let curves: Vec<&Curve> = self.curves.iter().filter(|curve| curve.result.norm == norm).collect();
            for curve in &curves {
                let scale = if norm == Norm::Linf { 255.0 } else { 1.0 };
                let clean = std::iter::once((0.0, curve.result.clean_accuracy));
                let points = curve.result.points.iter().map(|point| (point.epsilon * scale, point.accuracy));
                chart = chart.with_series(&curve.defence, clean.chain(points));
            }
            if !curves.is_empty() {
                report = report.svg(chart.to_svg()?, format!("Attacked in {}.", norm_name(norm)));
            }
        }
        Ok(report)
    }

    fn samples(&self, mut report: Report, test: &ImageSet) -> Result<Report> {
        if let Some(by_class) = &self.by_class {
            let text = format!(
                "{}. The classifier puts {} of them into the class that they were made for.",
                by_class.origin,
                percent(by_class.agreement),
            );
            report = report
                .section("Samples by class", text)
                .image(&by_class.images, "A row for each class.")
                .image(
                    &by_class.neighbours,
                    "The training image nearest to the first sample of each class, in pixels.",
                );
        }
        if let Some(distances) = &self.distances {
            let names = |class: usize| {
                test.class_names().map_or_else(|| class.to_string(), |names| names[class].clone())
            };
            let bars =
                distances.class_counts.iter().enumerate().map(|(class, count)| (names(class), *count as f64));
            let chart = BarChart::new("Samples of the buffer by class", "class", "samples").with_bars(bars);
            report = report.svg(
                chart.to_svg()?,
                format!("Where the classifier puts {} samples: {}.", distances.images, distances.origin),
            );
        }
        Ok(report)
    }

    fn chain_curves(&self, report: Report) -> Result<Report> {
        let points = self.chains.energies.points();
        let of = |value: fn(&jem_eval::EnergyPoint) -> f64| {
            points.iter().map(move |point| (point.step as f64, value(point)))
        };
        let chart = Chart::new("Energy along fresh chains", "step", "E(x), nats")
            .with_series("samples", of(|point| point.mean))
            .with_series("data", of(|point| point.mean + point.gap));
        let text = format!(
            "{} chains from noise. Healthy chains come down to the energy of data and stay there.",
            self.chains.chains
        );
        Ok(report.section("Chains", text).svg(chart.to_svg()?, "Mean E(x) of samples, and of test images."))
    }
}

fn norm_name(norm: Norm) -> &'static str {
    match norm {
        Norm::Linf => "L∞",
        Norm::L2 => "L2",
    }
}

fn radius(norm: Norm, epsilon: f64) -> String {
    match norm {
        Norm::Linf => format!("{:.0}/255", 255.0 * epsilon),
        Norm::L2 => format!("{epsilon}"),
    }
}
