//! One page: four tables of sampler by energy, a sheet of all samples, and a map of each energy.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::Result;
use jem_plot::{Field, Heatmap, Picture, Report, grid};

use crate::Options;
use crate::measure::{Block, Measured, Point};
use crate::methods::SPACING;
use crate::targets::Target;

/// Nats of energy above the lowest that colours show.
const DEPTH: f64 = 8.0;
/// Pixels of a tile of the sheet.
const TILE: usize = 160;

/// A table: what it is called, what it means, and the entry of a sampler on an energy.
type Table = (&'static str, &'static str, fn(&Measured) -> Option<String>);

const TABLES: [Table; 4] = [
    (
        "Bulk ESS per 1,000 gradients",
        "How many independent samples 1,000 gradients are worth, in the worse of the two coordinates. A draw is \
         taken every 8 gradients, so that 125 would be one independent sample a draw.",
        |row| row.ess.map(|ess| format!("{ess:.1}")),
    ),
    (
        "R-hat",
        "Whether the chains agree, in the worse of the two coordinates. Above 1.01 they have not all seen the same. \
         NaN: a chain has left for infinity, as it can without a test where the energy rises faster than a parabola.",
        |row| row.rhat.map(|rhat| format!("{rhat:.3}")),
    ),
    (
        "Distance to exact samples",
        "1,000 times the energy distance between draws of the chains and as many exact samples; 0 for equal laws. The \
         last row is another set of exact samples: numbers of that size, of either sign, are chance. A sampler can have \
         chains that agree and many effective samples, of another law: ImproperSgld has half of the noise that its step \
         calls for. An exact one is off where its chains have not met yet.",
        |row| row.distance.map(thousandths),
    ),
    (
        "Acceptance",
        "Mean probability of a move, of the samplers that test theirs. For tempering that of the cold replica.",
        |row| Some(row.chains.acceptance.map_or("-".to_owned(), |acceptance| format!("{acceptance:.2}"))),
    ),
];

/// Writes the page and the pictures, and prints the tables.
pub fn write(blocks: &[Block], options: &Options, seconds: f64, device: &Device) -> Result<()> {
    let names: Vec<&str> = blocks.iter().map(|block| block.target.name).collect();
    let headers: Vec<&str> = ["sampler", "exact"].into_iter().chain(names.iter().copied()).collect();
    let first = &blocks[0].rows;
    let summary = [
        ("Chains", first[0].chains.draws[0].len() / 2),
        ("Gradients of a chain", options.budget()),
        ("of these warm-up", options.budget() / 4),
        ("Gradients between two draws", SPACING),
        ("Seed", options.seed as usize),
    ];
    let mut summary: Vec<(&str, String)> = summary.map(|(key, value)| (key, value.to_string())).to_vec();
    summary.push(("Time", format!("{seconds:.0} s")));
    let mut page = Report::new("Samplers in the plane").summary(&summary);

    for (title, text, entry) in TABLES {
        let mut rows: Vec<Vec<String>> = (0..first.len()).map(|index| row(blocks, index, entry)).collect();
        if title.starts_with("Distance") {
            let floors = blocks.iter().map(|block| thousandths(block.floor));
            let exact = ["exact samples", "yes"].map(str::to_owned);
            rows.push(exact.into_iter().chain(floors).collect());
        }
        rows.retain(|row| row[2..].iter().any(|cell| cell != "-"));
        print_table(title, &headers, &rows);
        page = page.section(title, text).table(&headers, rows);
    }

    let sheet = sheet(blocks, options, device)?;
    sheet.write_png(options.out.join("samplers.png"))?;
    let columns: Vec<&str> = first.iter().map(|row| row.chains.method).collect();
    let caption = format!(
        "Rows from the top: {}. Columns from the left: exact samples, {}.",
        names.join(", "),
        columns.join(", ")
    );
    page = page.section("All samples", "Dark is likely.").image(sheet.to_data_uri()?, caption).section(
        "Energies",
        "Each with samples of the exact sampler that has the largest effective sample size.",
    );
    for block in blocks {
        let Some(best) = best(block) else { continue };
        let title = format!("{}: samples of {}", block.target.name, best.chains.method);
        let map = map(&block.target, options.shortened(160, 40), device)?
            .with_titles(title, "x", "y")
            .with_contours(7)
            .with_points(best.chains.method, best.points.iter().copied());
        map.write_svg(options.out.join(format!("{}.svg", block.target.name.replace(' ', "_"))))?;
        let caption = format!("E(x), log Z = {:.3}.", block.target.log_normaliser);
        page = page.svg(map.to_svg()?, caption);
    }
    let path = options.out.join("report.html");
    page.write(&path)?;
    println!("{}", path.display());
    Ok(())
}

/// One sampler on all energies.
fn row(blocks: &[Block], index: usize, entry: fn(&Measured) -> Option<String>) -> Vec<String> {
    let chains = &blocks[0].rows[index].chains;
    let mut cells = vec![chains.method.to_owned(), if chains.exact { "yes" } else { "no" }.to_owned()];
    let diverged = || "NaN".to_owned();
    cells.extend(blocks.iter().map(|block| entry(&block.rows[index]).unwrap_or_else(diverged)));
    cells
}

fn print_table(title: &str, headers: &[&str], rows: &[Vec<String>]) {
    println!("{title}");
    let line = |cells: Vec<&str>| {
        let rest: String = cells[1..].iter().map(|cell| format!(" {cell:>12}")).collect();
        println!("  {:<20}{rest}", cells[0]);
    };
    line(headers.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
    println!();
}

/// 1,000 times a number, rounded, without a sign at 0.
fn thousandths(value: f64) -> String {
    ((1_000.0 * value).round() as i64).to_string()
}

/// The exact sampler with the largest effective sample size.
fn best(block: &Block) -> Option<&Measured> {
    let exact = block.rows.iter().filter(|row| row.chains.exact && row.ess.is_some());
    exact.max_by(|a, b| a.ess.unwrap_or(0.0).total_cmp(&b.ess.unwrap_or(0.0)))
}

/// The energy, dark where it is low.
fn map(target: &Target, cells: usize, device: &Device) -> Result<Heatmap> {
    let [xs, ys] = target.window;
    let field = Field::of(xs, ys, [cells, cells], device, |x| target.energy.energy(x))?;
    let low = lowest(target, device);
    Ok(Heatmap::new(field).with_range(low, low + DEPTH))
}

/// About the lowest energy in the window.
fn lowest(target: &Target, device: &Device) -> f64 {
    const SIDE: usize = 200;
    let place =
        |(low, high): (f64, f64), index: usize| (low + (high - low) * index as f64 / SIDE as f64) as f32;
    let all = (0..SIDE * SIDE)
        .flat_map(|index| [place(target.window[0], index % SIDE), place(target.window[1], index / SIDE)]);
    let all = TensorData::new(all.collect::<Vec<f32>>(), [SIDE * SIDE, 2]);
    f64::from(target.energy.energy(Tensor::from_data(all, device)).min().into_scalar::<f32>())
}

/// A tile for every energy (down) and sampler (across), exact samples first.
fn sheet(blocks: &[Block], options: &Options, device: &Device) -> Result<Picture> {
    let mut tiles = Vec::new();
    for block in blocks {
        let map = map(&block.target, options.shortened(TILE / 2, 40), device)?.with_size(TILE);
        let sets = std::iter::once(&block.exact).chain(block.rows.iter().map(|row| &row.points));
        for points in sets {
            let few = points.iter().step_by((points.len() / 250).max(1)).copied().collect::<Vec<Point>>();
            tiles.push(tensor(&map.clone().with_points("samples", few).render()?, device));
        }
    }
    grid(&Tensor::cat(tiles, 0), (0.0, 1.0), 1 + blocks[0].rows.len(), 1, 2)
}

/// A picture as `[1, 3, height, width]` in [0, 1].
fn tensor(picture: &Picture, device: &Device) -> Tensor<4> {
    let (width, height) = (picture.width(), picture.height());
    let mut values = Vec::with_capacity(3 * (width * height) as usize);
    for channel in 0..3 {
        for y in 0..height {
            let row = (0..width).map(|x| picture.pixel(x, y).map_or(0, |colour| colour[channel]));
            values.extend(row.map(|value| f32::from(value) / 255.0));
        }
    }
    Tensor::from_data(TensorData::new(values, [1, 3, height as usize, width as usize]), device)
}
