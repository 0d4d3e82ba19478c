//! Likelihoods by a sum over a grid, a table of them, and the densities side by side.

use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::VectorSet;
use jem_core::energy::{EnergyModel, JointEnergy};
use jem_eval::{GridDensity, GridQuadrature};
use jem_plot::{BarChart, Field, Heatmap, Report, Sheet};
use serde_json::json;

use crate::Options;
use crate::learn::{Fitted, SIDE};

/// Cells of the grid a side; a multiple of both numbers below.
const CELLS: usize = 270;
/// Cells a side of the histogram of the data.
const BINS: usize = 135;
/// Cells a side of the comparison of masses, each a unit wide.
const BLOCKS: usize = 9;
/// Nats below the highest density that colours show.
const DEPTH: f64 = 8.0;

const EXTENT: (f64, f64) = (-(SIDE as f64), SIDE as f64);

/// The distribution of the data as a histogram of very many points.
pub struct Reference {
    /// Density in each bin.
    density: Vec<f64>,
    blocks: Vec<f64>,
}

impl Reference {
    pub fn new(points: &VectorSet) -> Result<Self> {
        let pairs: Vec<[f64; 2]> = pairs(points).collect();
        let count = |cells: usize| {
            let mut counts = vec![0.0; cells * cells];
            for index in pairs.iter().filter_map(|point| cell(*point, cells)) {
                counts[index] += 1.0 / pairs.len() as f64;
            }
            counts
        };
        let area = (2.0 * f64::from(SIDE) / BINS as f64).powi(2);
        let density = count(BINS).into_iter().map(|mass| mass / area).collect();
        Ok(Self { density, blocks: count(BLOCKS) })
    }

    /// Mean log-density of points. Where no point was counted, the density is that of a tenth of one.
    fn log_likelihood(&self, points: &VectorSet) -> f64 {
        let at = |point| cell(point, BINS).map_or(1e-6, |index| self.density[index].max(1e-5)).ln();
        let values: Vec<f64> = pairs(points).map(at).collect();
        mean(&values)
    }

    fn log_density(&self) -> Vec<f32> {
        self.density.iter().map(|density| density.max(1e-30).ln() as f32).collect()
    }

    /// The mass that would have to be moved between blocks of a unit, as a share of all.
    fn misplaced(&self, density: &GridDensity) -> f64 {
        let mut blocks = vec![0.0; BLOCKS * BLOCKS];
        for (point, mass) in density.points().iter().zip(density.masses()) {
            if let Some(index) = cell(*point, BLOCKS) {
                blocks[index] += mass;
            }
        }
        0.5 * blocks.iter().zip(&self.blocks).map(|(a, b)| (a - b).abs()).sum::<f64>()
    }
}

/// The cell that a point is in, row by row from the bottom.
fn cell(point: [f64; 2], cells: usize) -> Option<usize> {
    let part = point.map(|value| (value - EXTENT.0) / (EXTENT.1 - EXTENT.0) * cells as f64);
    let inside = part.iter().all(|value| (0.0..cells as f64).contains(value));
    inside.then(|| part[1] as usize * cells + part[0] as usize)
}

fn pairs(points: &VectorSet) -> impl Iterator<Item = [f64; 2]> + '_ {
    points.values().chunks_exact(2).map(|row| [row[0].into(), row[1].into()])
}

/// A method and its density.
pub struct Measured {
    name: &'static str,
    log_density: Vec<f32>,
    log_likelihood: f64,
    misplaced: f64,
    log_z: f64,
    /// How much log Z changes on cells of half the width.
    error: f64,
    edge: f64,
    learnt: Option<f64>,
    seconds: f64,
}

/// One seed.
pub struct Run {
    methods: Vec<Measured>,
    /// The log-likelihood of the histogram.
    ceiling: f64,
}

/// Normalises everything.
pub fn measure(
    fitted: Vec<Fitted>,
    test: &VectorSet,
    reference: &Reference,
    options: &Options,
    device: &Device,
) -> Result<Run> {
    let cells = options.shortened(CELLS, 90);
    let grid = GridQuadrature::new(EXTENT, EXTENT, [cells; 2])?;
    let points = test.all(device)?;
    let mut methods = Vec::new();
    for Fitted { name, net, log_normaliser: learnt, seconds } in fitted {
        let joint = JointEnergy::new(&net);
        let density = grid.density(device, |x| joint.energy(x))?;
        let fine = grid.refined()?.density(device, |x| joint.energy(x))?;
        let energies: Vec<f64> = joint.energy(points.clone()).into_data().iter().collect();
        let log_z = density.log_normaliser();
        let of = |mass: &f64| (mass / grid.cell_area()).max(1e-30).ln() as f32;
        methods.push(Measured {
            name,
            log_density: density.masses().iter().map(of).collect(),
            log_likelihood: -mean(&energies) - log_z,
            misplaced: 100.0 * reference.misplaced(&density),
            log_z,
            error: (fine.log_normaliser() - log_z).abs(),
            edge: density.edge_mass(),
            learnt,
            seconds,
        });
    }
    Ok(Run { methods, ceiling: reference.log_likelihood(test) })
}

/// Writes everything and prints the table.
pub fn write(runs: &[Run], reference: &Reference, options: &Options, seconds: f64) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let headers = [
        "method",
        "log-likelihood, nats",
        "misplaced mass, %",
        "log Z by grid",
        "log Z learnt",
        "training, s",
    ];
    let first = &runs[0].methods;
    let over = |of: &dyn Fn(&Run) -> f64, digits| range(&runs.iter().map(of).collect::<Vec<_>>(), digits);
    let mut rows: Vec<Vec<String>> = (0..first.len())
        .map(|index| {
            let learnt = |run: &Run| run.methods[index].learnt.unwrap_or(f64::NAN);
            vec![
                first[index].name.to_owned(),
                over(&|run| run.methods[index].log_likelihood, 3),
                over(&|run| run.methods[index].misplaced, 1),
                over(&|run| run.methods[index].log_z, 3),
                if first[index].learnt.is_some() { over(&learnt, 3) } else { "-".to_owned() },
                over(&|run| run.methods[index].seconds, 1),
            ]
        })
        .collect();
    let dashes = (0..4).map(|_| "-".to_owned());
    let counted = ["histogram of the data".to_owned(), over(&|run| run.ceiling, 3)];
    rows.push(counted.into_iter().chain(dashes).collect());
    for row in std::iter::once(&headers.map(str::to_owned).to_vec()).chain(&rows) {
        println!("{:<26}{}", row[0], row[1..].iter().map(|cell| format!("{cell:>26}")).collect::<String>());
    }
    let all = || runs.iter().flat_map(|run| &run.methods);
    let grid = format!(
        "log Z changes by {:.1e} nats at most on cells of half the width; at most {:.1e} of a density is at the edges",
        all().map(|method| method.error).fold(0.0, f64::max),
        all().map(|method| method.edge).fold(0.0, f64::max),
    );
    println!("grid: {grid}.");
    println!("{}", verdict(runs));

    let methods: Vec<_> = (0..first.len())
        .map(|index| {
            let of = |value: fn(&Measured) -> f64| -> Vec<f64> {
                runs.iter().map(|run| value(&run.methods[index])).collect()
            };
            json!({
                "method": first[index].name,
                "log_likelihood": of(|method| method.log_likelihood),
                "misplaced_mass_percent": of(|method| method.misplaced),
                "log_z": of(|method| method.log_z),
                "log_z_learnt": of(|method| method.learnt.unwrap_or(f64::NAN)),
                "log_z_change_on_finer_grid": of(|method| method.error),
                "edge_mass": of(|method| method.edge),
                "training_seconds": of(|method| method.seconds),
            })
        })
        .collect();
    let json = json!({
        "data": options.data.name(),
        "iterations": options.shortened(options.iterations, 20),
        "seeds": (options.seed..options.seed + options.seeds).collect::<Vec<_>>(),
        "histogram_log_likelihood": runs.iter().map(|run| run.ceiling).collect::<Vec<_>>(),
        "methods": methods,
    });
    let path = out("score_matching.json");
    let text = serde_json::to_string_pretty(&json).expect("numbers and strings");
    std::fs::write(&path, text).map_err(|source| jem_core::Error::io(&path, source))?;

    let sheet = sheet(&runs[0], reference, options)?;
    sheet.write_svg(out("score_matching.svg"))?;
    let summary = [
        ("Data", options.data.name().to_owned()),
        ("Training", format!("{} iterations each", options.shortened(options.iterations, 20))),
        ("Seeds", format!("{} from {}", options.seeds, options.seed)),
        ("Grid", grid),
        ("Time", format!("{seconds:.0} s")),
    ];
    Report::new("One energy, trained in four ways")
        .summary(&summary)
        .section(
            "Held-out log-likelihood",
            "In nats a point, each energy normalised by a sum over a grid. The histogram counts two million points: \
             about what is possible. Misplaced is the mass that would have to be moved between squares of a unit to \
             make the model's masses those of the data: slopes alone do not tell how much of it is in which part. \
             Over several seeds: mean [smallest, largest].",
        )
        .table(&headers, rows)
        .section("Densities", "log p(x), bright is likely, eight nats below the highest. Of the first seed.")
        .svg(sheet.to_svg(), "The data, four densities on the same colours, and what held-out points say of them.")
        .write(out("report.html"))?;
    println!("{}", out("report.html").display());
    Ok(())
}

/// What the table comes to.
fn verdict(runs: &[Run]) -> String {
    let over = |index: usize, of: fn(&Measured) -> f64| {
        mean(&runs.iter().map(|run| of(&run.methods[index])).collect::<Vec<_>>())
    };
    let best = |of: fn(&Measured) -> f64| {
        let all = 0..runs[0].methods.len();
        let index = all.max_by(|a, b| over(*a, of).total_cmp(&over(*b, of))).unwrap_or(0);
        (runs[0].methods[index].name, over(index, of))
    };
    let (likeliest, log_likelihood) = best(|method| method.log_likelihood);
    let (fairest, misplaced) = best(|method| -method.misplaced);
    let gaps = runs.iter().flat_map(|run| &run.methods).filter_map(|m| m.learnt.map(|c| (c - m.log_z).abs()));
    format!(
        "The best held-out log-likelihood is that of {likeliest}, {log_likelihood:.3} nats a point; the least mass is \
         misplaced by {fairest}, {:.1} %. The normaliser that noise contrast has learnt is at most {:.3} nats off.",
        -misplaced,
        gaps.fold(0.0, f64::max),
    )
}

fn sheet(run: &Run, reference: &Reference, options: &Options) -> Result<Sheet> {
    let top = reference.log_density().into_iter().fold(f32::NEG_INFINITY, f32::max).into();
    let map = |title: String, cells: usize, values: Vec<f32>| -> Result<String> {
        let field = Field::new(EXTENT, EXTENT, [cells; 2], values)?;
        Heatmap::new(field).with_titles(title, "x", "y").with_range(top - DEPTH, top).to_svg()
    };
    let data = map(format!("data: {}, log p", options.data.name()), BINS, reference.log_density())?;
    let mut sheet = Sheet::new("One energy, trained in four ways", 3)?.with_chart(data)?;
    for method in &run.methods {
        let title = format!("{}, log p", method.name);
        sheet = sheet.with_chart(map(title, options.shortened(CELLS, 90), method.log_density.clone())?)?;
    }
    let short = |name: &str| name.replace(" score matching", "");
    let bars = run.methods.iter().map(|method| (short(method.name), -method.log_likelihood));
    let bars = bars.chain([("histogram".to_owned(), -run.ceiling)]);
    let chart = BarChart::new("Held-out NLL, lower is better", "method", "nats a point").with_bars(bars);
    sheet.with_chart(chart.to_svg()?)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A mean, and a range where there are several.
fn range(values: &[f64], digits: usize) -> String {
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    if values.len() == 1 {
        return format!("{:.digits$}", values[0]);
    }
    format!("{:.digits$} [{low:.digits$}, {high:.digits$}]", mean(values))
}
