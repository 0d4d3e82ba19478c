//! Two concepts that were stated apart, combined as "and", "or" and "and not" by arithmetic on their energies.
//!
//! ```text
//! cargo run --example compose
//! cargo run --example compose -- --quick     what CI runs: seconds, and chains that have not arrived
//! ```
//!
//! One concept is a pair of rings, the other the upper half-plane. In the plane a sum over a grid gives the share of
//! each region, so that what the samples say can be checked. It takes about twenty seconds on two CPU cores.

use std::path::PathBuf;

use burn::tensor::{Device, Tensor, TensorData, activation};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use jem_core::Result;
use jem_core::energy::analytic::{Gaussian, Rings};
use jem_core::energy::{Energy, EnergyModel, Mixture, Negation, Product};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{MalaConfig, ParallelTemperingConfig, run as run_chains};
use jem_plot::{Field, Heatmap, Picture, Report, grid};

/// Combine two energies in the plane.
#[derive(Debug, Parser)]
struct Options {
    /// Chains of each combination.
    #[arg(long, default_value_t = 2_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    chains: usize,
    /// Transitions of a chain.
    #[arg(long, default_value_t = 1_200)]
    steps: usize,
    /// λ of "and not": the density is divided by that of the negated concept to the power of λ.
    #[arg(long, default_value_t = 1.0)]
    strength: f32,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/compose")]
    out: PathBuf,
    /// Few and short chains, to see that everything runs.
    #[arg(long)]
    quick: bool,
}

impl Options {
    /// One of each chain.
    fn num_samples(&self) -> usize {
        if self.quick { self.chains.min(100) } else { self.chains }
    }
}

/// Half the side of the square that is shown.
const SIDE: f64 = 5.0;
const RADII: [f32; 2] = [1.6, 3.2];
const THICKNESS: f32 = 0.2;
/// A point is on a ring if it is no further than this from one: two and a half deviations.
const ON_A_RING: f64 = 0.5;

/// The upper half-plane with a soft edge: p(x, y) ∝ N(x, y; 0, s²) (ε + (1 - ε) σ(k y)).
///
/// The floor ε bounds the energy of the edge, without which "and not" would have no normaliser far below it.
struct UpperHalf {
    spread: Gaussian,
}

impl UpperHalf {
    const FLOOR: f32 = 0.01;
    const STEEPNESS: f32 = 8.0;

    /// log Z. The mean of σ(k y) over a law that is symmetric in y is a half.
    fn log_normaliser(&self) -> f64 {
        self.spread.log_normaliser(2) + (0.5 * (1.0 + f64::from(Self::FLOOR))).ln()
    }
}

impl EnergyModel<2> for UpperHalf {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let height = x.clone().narrow(1, 1, 1).mul_scalar(Self::STEEPNESS);
        let inside = activation::sigmoid(height).mul_scalar(1.0 - Self::FLOOR).add_scalar(Self::FLOOR);
        self.spread.energy(x) - inside.log().squeeze_dim(1)
    }
}

type Point = (f64, f64);
type Region = fn(&Point) -> bool;

fn on_a_ring(&(x, y): &Point) -> bool {
    RADII.iter().any(|radius| (x.hypot(y) - f64::from(*radius)).abs() <= ON_A_RING)
}

fn is_upper(&(_, y): &Point) -> bool {
    y > 0.0
}

/// One combination, and what its samples should be.
struct Combination<'a> {
    name: &'static str,
    energy: Energy<'a, 2>,
    wanted: Region,
}

fn combinations<'a>(rings: &'a Rings, half: &'a UpperHalf, strength: f32) -> Result<Vec<Combination<'a>>> {
    let (ring, upper) = (|| Energy::new(rings), || Energy::new(half));
    // Weights of 1/Z make the shares of the two equal.
    let weights = [-rings.log_normaliser() as f32, -half.log_normaliser() as f32];
    let either = Mixture::new(vec![(weights[0], ring()), (weights[1], upper())])?;
    let all: [(_, Energy<'a, 2>, Region); 5] = [
        ("rings", ring(), on_a_ring),
        ("upper half", upper(), is_upper),
        ("rings and upper half", Energy::new(Product::new(vec![ring(), upper()])?), |p| {
            on_a_ring(p) && is_upper(p)
        }),
        ("rings or upper half", Energy::new(either), |p| on_a_ring(p) || is_upper(p)),
        ("rings and not upper half", Energy::new(Negation::new(rings, half, strength)?), |p| {
            on_a_ring(p) && !is_upper(p)
        }),
    ];
    Ok(all.into_iter().map(|(name, energy, wanted)| Combination { name, energy, wanted }).collect())
}

/// Ends of chains that start all over the square: exact, and over the barrier between the rings.
fn samples(
    energy: &Energy<'_, 2>,
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Point>> {
    let (chains, steps) = (options.num_samples(), if options.quick { 20 } else { options.steps });
    let step = 0.5 * f64::from(THICKNESS).powi(2);
    let ladder = ParallelTemperingConfig::geometric(0.1, 4);
    let kernels = ladder.inverse_temperatures.iter().map(|beta| MalaConfig::new(step / beta).init());
    let kernels = kernels.collect::<Result<Vec<_>>>()?;
    let sampler = ladder.init_each(kernels)?;
    let start = noise.uniform([chains, 2], -4.0..4.0, Stream::new("compose/start"), device);
    let end = run_chains(&sampler, energy, start, steps, noise);
    let values: Vec<f64> = end.into_data().iter::<f64>().collect();
    Ok(values.chunks_exact(2).map(|point| (point[0], point[1])).collect())
}

/// Points of a grid on a square of twice the side, the part of all mass at each, and the lowest energy.
fn quadrature(energy: &Energy<'_, 2>, cells: usize, device: &Device) -> (Vec<Point>, Vec<f64>, f64) {
    let width = 4.0 * SIDE / cells as f64;
    let place = |index: usize| width * (index as f64 + 0.5) - 2.0 * SIDE;
    let points: Vec<Point> = (0..cells * cells).map(|i| (place(i % cells), place(i / cells))).collect();
    let values: Vec<f32> = points.iter().flat_map(|(x, y)| [*x as f32, *y as f32]).collect();
    let energies = energy.energy(Tensor::from_data(TensorData::new(values, [cells * cells, 2]), device));
    let energies: Vec<f64> = energies.into_data().iter::<f64>().collect();
    let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
    let mass: Vec<f64> = energies.iter().map(|energy| (lowest - energy).exp()).collect();
    let total: f64 = mass.iter().sum();
    (points, mass.into_iter().map(|mass| mass / total).collect(), lowest)
}

/// What was found of one combination.
struct Found {
    name: &'static str,
    map: Heatmap,
    /// Shares of the samples, and exact ones: on a ring, in the half-plane, in both, in neither, as wanted.
    shares: [(f64, f64); 5],
}

fn measure(part: &Combination<'_>, options: &Options, noise: &mut Noise, device: &Device) -> Result<Found> {
    let samples = samples(&part.energy, options, noise, device)?;
    let cells = if options.quick { 100 } else { 800 };
    let (points, mass, lowest) = quadrature(&part.energy, cells, device);
    let regions: [&dyn Fn(&Point) -> bool; 5] = [
        &on_a_ring,
        &is_upper,
        &|point| on_a_ring(point) && is_upper(point),
        &|point| !on_a_ring(point) && !is_upper(point),
        &part.wanted,
    ];
    let shares = regions.map(|inside| {
        let counted = samples.iter().filter(|point| inside(point)).count() as f64 / samples.len() as f64;
        let exact = points.iter().zip(&mass).filter(|(point, _)| inside(point)).map(|(_, mass)| mass).sum();
        (counted, exact)
    });
    let (window, cells) = ((-SIDE, SIDE), if options.quick { 60 } else { 200 });
    let field = Field::of(window, window, [cells; 2], device, |x| part.energy.energy(x))?;
    let shown = samples.into_iter().take(600);
    let map = Heatmap::new(field)
        .with_titles(part.name, "x", "y")
        .with_range(lowest, lowest + 8.0)
        .with_points("samples", shown);
    Ok(Found { name: part.name, map, shares })
}

/// Writes the page and the pictures, and prints the table.
fn write(found: &[Found], options: &Options, seconds: f64, device: &Device) -> Result<()> {
    let headers = ["combination", "on a ring", "upper half", "both", "neither", "as wanted"];
    let share = |(counted, exact): &(f64, f64)| format!("{:.1} ({:.1})", 100.0 * counted, 100.0 * exact);
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|part| std::iter::once(part.name.to_owned()).chain(part.shares.iter().map(share)).collect())
        .collect();
    for row in std::iter::once(&headers.map(str::to_owned).to_vec()).chain(&rows) {
        let cells: String = row[1..].iter().map(|cell| format!(" {cell:>15}")).collect();
        println!("{:<25}{cells}", row[0]);
    }
    let tiles = found.iter().map(|part| Ok(tensor(&part.map.clone().with_size(400).render()?, device)));
    let sheet = grid(&Tensor::cat(tiles.collect::<Result<Vec<_>>>()?, 0), (0.0, 1.0), found.len(), 1, 4)?;
    sheet.write_png(options.out.join("compose.png"))?;
    let names: Vec<&str> = found.iter().map(|part| part.name).collect();
    let mut page = Report::new("Energies combined")
        .summary(&[
            ("Sampler", "parallel tempering of MALA, 4 replicas".to_owned()),
            ("Samples", options.num_samples().to_string()),
            ("Strength of the negation", options.strength.to_string()),
            ("Seed", options.seed.to_string()),
            ("Time", format!("{seconds:.0} s")),
        ])
        .section("Side by side", "Dark is likely. Nothing was fitted to the combinations.")
        .image(sheet.to_data_uri()?, format!("From the left: {}.", names.join(", ")))
        .section(
            "Shares of the samples, %",
            "In brackets what a sum over a grid gives. Each chain gives one sample, so that a share p of n has a standard \
             error of √(p(1 - p)/n). On a ring is within two and a half deviations of one. As wanted \
             is what the name says: on a ring, in the half-plane, in both, in either, on a ring outside the half-plane.",
        )
        .table(&headers, rows)
        .section("Maps", "E(x), the lowest eight nats, and samples.");
    for part in found {
        part.map.write_svg(options.out.join(format!("{}.svg", part.name.replace(' ', "_"))))?;
        let wanted = &part.shares[4];
        let caption = format!("{}: {:.1} % of the samples are as wanted.", part.name, 100.0 * wanted.0);
        page = page.svg(part.map.to_svg()?, caption);
    }
    let path = options.out.join("report.html");
    page.write(&path)?;
    println!("{}", path.display());
    Ok(())
}

/// A picture as `[1, 3, height, width]` in [0, 1].
fn tensor(picture: &Picture, device: &Device) -> Tensor<4> {
    let (width, height) = (picture.width(), picture.height());
    let pixel = |channel: usize, x, y| picture.pixel(x, y).map_or(0.0, |rgb| f32::from(rgb[channel]) / 255.0);
    let rows = (0..3).flat_map(|channel| (0..height).map(move |y| (channel, y)));
    let values: Vec<f32> = rows
        .flat_map(|(channel, y)| (0..width).map(move |x| (channel, x, y)))
        .map(|(c, x, y)| pixel(c, x, y))
        .collect();
    Tensor::from_data(TensorData::new(values, [1, 3, height as usize, width as usize]), device)
}

fn run(options: &Options) -> Result<()> {
    let device = Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    let rings = Rings::new(RADII.to_vec(), THICKNESS)?;
    let half = UpperHalf { spread: Gaussian::new(0.0, 2.0)? };
    let noise = Noise::host(options.seed);
    let mut found = Vec::new();
    for (number, part) in combinations(&rings, &half, options.strength)?.iter().enumerate() {
        found.push(measure(part, options, &mut noise.fork(number as u64), &device)?);
    }
    write(&found, options, started.elapsed().as_secs_f64(), &device)
}

fn main() -> std::process::ExitCode {
    match run(&Options::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
