//! Two tables over the seeds, as text and as JSON, and one sheet of pictures.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::noise::Noise;
use jem_plot::{Field, Heatmap, Report, Sheet};
use serde_json::json;

use crate::learn::{points, tensor};
use crate::measure::{self, GAUSSIAN, PLANNED, SAMPLED, TRUTH, Trained, WINDOW, density, grid, mean};
use crate::roll_outs::{Paths, histogram};
use crate::system::{Point, log_density};
use crate::{Options, Run};

/// A state at the fork, and one on the right road.
const FORK: Point = [0.0, 0.0];
const ROAD: Point = [1.921, 0.389];
/// Columns of the first table; the other figures make the second.
const PREDICTIONS: [&str; 8] = [
    "NLL, nats",
    "at the fork",
    "elsewhere",
    "RMSE of mean",
    "of mode",
    "of MPPI",
    "parameters",
    "training, s",
];

/// Rows by columns of figures.
struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Rows and columns in the order in which the figures came; each cell is a mean and, over several seeds, a range.
fn table(runs: &[Run], wanted: impl Fn(&str) -> bool) -> Table {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for (row, column, _) in runs[0].figures.iter().filter(|(_, column, _)| wanted(column)) {
        if !rows.contains(row) {
            rows.push(row);
        }
        if !columns.contains(column) {
            columns.push(column);
        }
    }
    let cell = |row: &str, column: &str| {
        let values = values(runs, row, column);
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        let digits = match column {
            "parameters" => 0,
            _ if column.ends_with('%') || column.ends_with(", s") => 1,
            "Fréchet" | "kernel" => 4,
            _ => 3,
        };
        match values.len() {
            0 => String::new(),
            _ if values.iter().any(|value| value.is_nan()) => "-".to_owned(), // nothing to take the mean of
            _ if low == high => format!("{low:.digits$}"),
            _ => format!("{:.digits$} [{low:.digits$}, {high:.digits$}]", mean(&values)),
        }
    };
    let body = rows.iter().map(|row| {
        std::iter::once((*row).to_string()).chain(columns.iter().map(|column| cell(row, column))).collect()
    });
    let headers = std::iter::once("model").chain(columns.iter().copied());
    Table { headers: headers.map(str::to_owned).collect(), rows: body.collect() }
}

/// One value for each seed that has it.
fn values(runs: &[Run], row: &str, column: &str) -> Vec<f64> {
    let of = |run: &Run| run.figures.iter().find(|(r, c, _)| (*r, *c) == (row, column)).map(|found| found.2);
    runs.iter().filter_map(of).collect()
}

/// What the tables come to.
fn verdict(runs: &[Run]) -> String {
    let of = |row: &str, column: &str| mean(&values(runs, row, column));
    let gain = |column: &str| of(GAUSSIAN, column) - of(measure::ENERGY, column);
    format!(
        "The energy's likelihood is {:+.3} nats a step on the feed-forward model's: {:+.3} at the fork, {:+.3} elsewhere. \
         Roll-outs misplace {:.0} % of the states by sampling, {:.0} % by MPPI and {:.0} % of the feed-forward model; \
         {:.0} % is chance. The best guess in the square needs no density: RMSE {:.3} against {:.3}.",
        gain("NLL, nats"),
        gain("at the fork"),
        gain("elsewhere"),
        of(SAMPLED, "misplaced, %"),
        of(PLANNED, "misplaced, %"),
        of(GAUSSIAN, "misplaced, %"),
        of(TRUTH, "misplaced, %"),
        of(measure::ENERGY, "RMSE of mean"),
        of(GAUSSIAN, "RMSE of mean"),
    )
}

fn print(title: &str, table: &Table) {
    println!("{title}");
    for column in 1..table.headers.len() {
        let cells = table.rows.iter().map(|row| format!("{:>26}", row[column]));
        if column == 1 {
            let names = table.rows.iter().map(|row| format!("{:>26}", row[0]));
            println!("  {:<22}{}", "", names.collect::<String>());
        }
        println!("  {:<22}{}", table.headers[column], cells.collect::<String>());
    }
    println!();
}

/// Writes everything and prints the tables.
pub fn write(runs: &[Run], options: &Options, seconds: f64, device: &Device) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let predictions = table(runs, |column| PREDICTIONS.contains(&column));
    let roll_outs = table(runs, |column| !PREDICTIONS.contains(&column));
    print("One step: held-out windows, nats and units of length", &predictions);
    print("Roll-outs: states of the last three quarters, against another simulation", &roll_outs);
    let largest = |of: fn(&Run) -> f64| runs.iter().map(of).fold(0.0, f64::max);
    let error = format!(
        "log Z changes by {:.1e} nats on average and {:.1e} at most on cells of half the width; at most {:.1e} of the \
         mass is at the edges; the system's own density sums to 1 within {:.0e}",
        mean(&runs.iter().map(|run| run.grid_error.mean).collect::<Vec<_>>()),
        largest(|run| run.grid_error.largest),
        largest(|run| run.grid_error.edge),
        largest(|run| run.grid_error.truth),
    );
    println!("grid: {error}.");
    println!("{}", verdict(runs));

    let json = json!({
        "iterations": options.shortened(options.iterations, 30),
        "objective": format!("{:?}", options.objective),
        "seeds": (options.seed..options.seed + options.seeds).collect::<Vec<_>>(),
        "seconds": seconds,
        "grid": runs.iter().map(|run| json!({
            "mean_change": run.grid_error.mean,
            "largest_change": run.grid_error.largest,
            "edge_mass": run.grid_error.edge,
        })).collect::<Vec<_>>(),
        "figures": runs[0].figures.iter().map(|(row, column, _)| json!({
            "model": row, "figure": column, "values": values(runs, row, column),
        })).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&json).expect("numbers and strings");
    let path = out("trajectory.json");
    std::fs::write(&path, text).map_err(|source| jem_core::Error::io(&path, source))?;

    let sheet = sheet(&runs[0], options, device)?;
    sheet.write_svg(out("trajectory.svg"))?;
    let summary = [
        ("System", "a noisy particle on two circular roads that touch at the origin".to_owned()),
        ("Objective of the energy", format!("{:?}", options.objective)),
        (
            "Training",
            format!("{} iterations of {} windows", options.shortened(options.iterations, 30), options.batch),
        ),
        ("Seeds", format!("{} from {}", options.seeds, options.seed)),
        ("Grid", error),
        ("Time", format!("{seconds:.0} s")),
    ];
    Report::new("Trajectories by an energy and by a feed-forward model")
        .summary(&summary)
        .section(
            "One step",
            "Held-out windows. NLL is the mean of -log p(next | present): lower is better, and no model can be below \
             the system itself but by chance. The mean is the best guess in the square; the mode is a place where the \
             particle can be, and pays for it at the fork. Over several seeds: mean [smallest, largest].",
        )
        .table(&predictions.headers, predictions.rows)
        .section(
            "Roll-outs",
            "Distances between the states of roll-outs and those of another simulation, 0 for equal distributions; \
             the first row shows what is chance. Misplaced is the share of states that would have to be moved to make \
             the histograms the same. Between the roads is the share of steps from where the choice is open that \
             end within a deviation of the line between them; a Gaussian ends there too often. A state is off the roads at a distance of 0.4, four deviations. The spread is the root mean square distance from the \
             nearer road: MPPI looks for likely states and draws none, so that its spread is too small.",
        )
        .table(&roll_outs.headers, roll_outs.rows)
        .section("Pictures", "Of the first seed.")
        .svg(
            sheet.to_svg(),
            "Above: how often roll-outs visit a place, and twelve steps of one. Below: the density of the next state where \
             the present one, the white dot, is at the fork, and where it is on the right road.",
        )
        .write(out("report.html"))?;
    println!("{}", out("report.html").display());
    Ok(())
}

fn sheet(run: &Run, options: &Options, device: &Device) -> Result<Sheet> {
    let cells = options.shortened([180, 120], [60, 40]);
    let mut sheet =
        Sheet::new("A noisy particle on two roads: roll-outs, and the density of the next state", 4)?;
    for (name, paths) in &run.roll_outs.named {
        sheet = sheet.with_chart(visits(name, paths)?.to_svg()?)?;
    }
    for (place, present) in [("at the fork", FORK), ("on the road", ROAD)] {
        let maps = conditionals(&run.models, present, cells, device)?;
        for (name, field) in maps {
            let map = conditional(&format!("{name}: log p(next), present {place}"), field);
            sheet =
                sheet.with_chart(map.with_points("present state", [(present[0], present[1])]).to_svg()?)?;
        }
        sheet = sheet.with_chart(draws(run, place, present, cells, options, device)?.to_svg()?)?;
    }
    Ok(sheet)
}

/// How often the states of roll-outs are in each cell, and some steps of one.
fn visits(name: &str, paths: &Paths) -> Result<Heatmap> {
    let cells = [54, 36];
    let shares = histogram(paths, cells).into_iter().map(|share| 1_000.0 * share as f32);
    let field = Field::new(WINDOW[0], WINDOW[1], cells, shares.collect())?;
    let path: Vec<(f64, f64)> = paths[0].iter().take(13).map(|[x, y]| (*x, *y)).collect();
    Ok(Heatmap::new(field)
        .with_titles(format!("{name}: visits, per mille"), "x", "y")
        .with_range(0.0, 6.0)
        .with_paths("12 steps", [path]))
}

/// log p(next | present) of the system and of both models, near to where the next state is.
fn conditionals(
    models: &Trained,
    present: Point,
    cells: [usize; 2],
    device: &Device,
) -> Result<Vec<(&'static str, Field)>> {
    let around =
        [(present[0] - 1.2, present[0] + 1.2), if present == FORK { (-0.3, 1.3) } else { (-1.1, 0.5) }];
    let log_z = density(&models.energy, present, &grid()?.refined()?, device)?.log_normaliser();
    let past = |count: usize| tensor([present].into_iter(), device).repeat_dim(0, count);
    let field = |of: &dyn Fn(Tensor<2>) -> Tensor<1>| Field::of(around[0], around[1], cells, device, of);
    let truth = field(&|next| {
        let values: Vec<f32> =
            points(next).into_iter().map(|next| log_density(present, next) as f32).collect();
        Tensor::from_floats(values.as_slice(), device)
    })?;
    let learnt = field(&|next| models.energy.of(past(next.dims()[0]), next).add_scalar(log_z).neg())?;
    let gaussian = field(&|next| models.gaussian.log_density(past(next.dims()[0]), next))?;
    Ok(vec![(TRUTH, truth), (measure::ENERGY, learnt), (GAUSSIAN, gaussian)])
}

fn conditional(title: &str, field: Field) -> Heatmap {
    Heatmap::new(field).with_titles(title, "x", "y").with_range(-6.0, 3.0)
}

/// Next states by the sampler and by MPPI, over the density of the energy.
fn draws(
    run: &Run,
    place: &str,
    present: Point,
    cells: [usize; 2],
    options: &Options,
    device: &Device,
) -> Result<Heatmap> {
    let mut noise = Noise::host(options.seed).fork(1);
    let past = tensor([present].into_iter(), device).repeat_dim(0, options.shortened(150, 20));
    let pairs = |next: Vec<Point>| next.into_iter().map(|[x, y]| (x, y));
    let samples = points(measure::sampled(&run.models.energy, past.clone(), &mut noise)?);
    let plans = points(measure::planned(&run.models.energy, past, &mut noise)?);
    let maps = conditionals(&run.models, present, cells, device)?;
    let (_, field) = maps.into_iter().nth(1).expect("three maps");
    Ok(conditional(&format!("energy: next states drawn, present {place}"), field)
        .with_points(SAMPLED, pairs(samples))
        .with_points(PLANNED, pairs(plans)))
}
