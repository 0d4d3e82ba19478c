//! One page: the losses in a table, their surfaces side by side with the data, and the energies over time.

use jem_core::Result;
use jem_core::objectives::Loss;
use jem_core::objectives::energy_based::{Margin, ebl_terms};
use jem_core::train::Record;
use jem_plot::{Chart, Heatmap, Report};

use crate::Options;
use crate::learn::{Pairs, Surface};

/// Below this part of the range before training, a surface counts as flat.
const FLAT: f64 = 0.02;

/// Writes the page and prints its table.
pub fn write(surfaces: &[Surface], data: &Pairs, options: &Options, seconds: f64) -> Result<()> {
    let before = surfaces.first().map_or(1.0, |surface| surface.range);
    let rows: Vec<Vec<String>> = surfaces.iter().map(|surface| row(surface, before)).collect();
    let summary = [
        ("Data", format!("{} pairs, y = x² + U(-0.2, 0.2)", data.points.len())),
        ("Training", format!("{} iterations each", options.shortened(options.iterations, 10))),
        ("Margin of the hinge and square-square losses", options.margin.to_string()),
        ("β of the probabilistic losses", options.beta.to_string()),
        ("Incorrect", format!("further than {} from the correct answer", options.epsilon)),
        ("Seed", options.seed.to_string()),
        ("Time", format!("{seconds:.0} s")),
    ];
    let headers = [
        "surface",
        "margin",
        "loss",
        "E correct",
        "E offending",
        "errors",
        "range over y",
        "|Y* - x²|",
        "flat",
    ];
    let mut page = Report::new("Ten losses, one problem")
        .summary(&summary)
        .section(
            "What each loss leaves",
            "Means over the last tenth of training. The range is the highest less the lowest energy over all \
             answers, averaged over the inputs: a surface without range tells nothing. A margin of 0 or none allows \
             that, and one above 0 does not.\n\n\
             Losses that see differences of energies alone can let the surface grow as steep as time allows, so that \
             ranges are not for comparison beyond flat or not.",
        )
        .table(&headers, rows.clone())
        .section(
            "Surfaces",
            "E(x, y), dark where it is low. Points are data, the line is the answer Y*(x) of lowest energy. Colours \
             go up to the highest energy of an input, averaged over the inputs, or to a tenth of what that was before \
             training if it is less.",
        );
    let tenth = surfaces.first().map_or(0.0, |surface| surface.height / 10.0);
    for surface in surfaces {
        let top = surface.height.max(tenth);
        let map = Heatmap::new(surface.field.clone())
            .with_titles(surface.title.clone(), "x", "y")
            .with_range(0.0, top)
            .with_contours(8)
            .with_points("data", data.points.iter().copied().step_by(4))
            .with_paths("Y*(x)", [surface.answers.clone()]);
        let caption = format!("{}: range {:.3}, error {:.3}.", surface.title, surface.range, surface.error);
        page = page.svg(map.to_svg()?, caption);
    }
    for (title, name) in [
        ("Energy of the correct answers", ebl_terms::ENERGY_CORRECT),
        ("Energy of the most offending answers", ebl_terms::ENERGY_OFFENDING),
    ] {
        let trained = surfaces.iter().filter(|surface| surface.loss.is_some());
        let chart = trained.fold(Chart::new(title, "iteration", "energy").with_log_y(), |chart, surface| {
            chart.with_series(surface.title.clone(), curve(&surface.records, name))
        });
        page = page.svg(chart.to_svg()?, format!("{title} over training, ten iterations at a time."));
    }
    let path = options.out.join("report.html");
    page.write(&path)?;
    println!("{:<38} {:>9} {:>9} {:>6}", "surface", "range", "error", "flat");
    for surface in surfaces {
        let flat = if surface.range < FLAT * before { "yes" } else { "no" };
        println!("{:<38} {:>9.4} {:>9.3} {flat:>6}", surface.title, surface.range, surface.error);
    }
    println!("{}", path.display());
    Ok(())
}

fn row(surface: &Surface, before: f64) -> Vec<String> {
    let margin = surface.loss.map_or(String::new(), |loss| match loss.margin() {
        Margin::None => "none".to_owned(),
        Margin::Zero => "0".to_owned(),
        Margin::Of(margin) => margin.to_string(),
        Margin::Positive => "> 0".to_owned(),
    });
    let last = |name: &str| {
        let values: Vec<f64> = values(&surface.records, name).map(|(_, value)| value).collect();
        let tail = &values[values.len() - values.len().div_ceil(10)..];
        let mean = tail.iter().sum::<f64>() / tail.len() as f64;
        if tail.is_empty() { String::new() } else { format!("{mean:.4}") }
    };
    vec![
        surface.title.clone(),
        margin,
        last(Loss::TOTAL),
        last(ebl_terms::ENERGY_CORRECT),
        last(ebl_terms::ENERGY_OFFENDING),
        last(ebl_terms::ERRORS),
        format!("{:.4}", surface.range),
        format!("{:.3}", surface.error),
        if surface.range < FLAT * before { "yes" } else { "no" }.to_owned(),
    ]
}

/// A term of the objective at every iteration.
fn values<'a>(records: &'a [Record], name: &'a str) -> impl Iterator<Item = (f64, f64)> + 'a {
    records.iter().filter_map(move |record| match record {
        Record::Step(step) => Some((step.iteration as f64, *step.values.get(name)?)),
        _ => None,
    })
}

/// Means of ten iterations at a time.
fn curve(records: &[Record], name: &str) -> Vec<(f64, f64)> {
    let values: Vec<(f64, f64)> = values(records, name).collect();
    let mean = |ten: &[(f64, f64)]| {
        let count = ten.len() as f64;
        (ten.iter().map(|(x, _)| x).sum::<f64>() / count, ten.iter().map(|(_, y)| y).sum::<f64>() / count)
    };
    values.chunks(10).map(mean).collect()
}
