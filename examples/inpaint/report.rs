//! What comes out: tables, pictures, numbers, and one page that holds them all.

use burn::tensor::{Device, Tensor};
use jem_core::data::{ImageSet, PixelRange};
use jem_core::error::{Error, Result};
use jem_plot::{Chart, Picture, Report, grid};

use crate::classify::{ATTACK_STEPS, ATTACKED, ATTACKS, RADIUS, Rule, STEPS as REFINEMENT_STEPS};
use crate::cross::Stage;
use crate::fill::{CLASS_MEAN, Fill};
use crate::guesses::{Pixels, images, mean, paired, pixels};
use crate::numbers;
use crate::options::Options;
use crate::restore::{Restoration, STEPS};
use crate::train::Subject;

/// Chains of each digit in a picture.
const SHOWN: usize = 4;

/// All that a run has found.
pub struct Found {
    pub fills: Vec<Fill>,
    pub restored: Vec<Restoration>,
    pub crossed: Vec<Stage>,
    pub rules: Vec<Rule>,
}

/// Rows of digits, all of one length, as a picture.
fn rows(rows: &[Vec<Pixels>], device: &Device) -> Result<Picture> {
    let columns = rows.first().map_or(1, Vec::len);
    let all: Tensor<4> = images(&rows.concat(), device);
    grid(&all, (PixelRange::Symmetric.low(), PixelRange::Symmetric.high()), columns, 8, 2)
}

/// The first digit of each class.
fn first_of_each(test: &ImageSet) -> Vec<usize> {
    (0..test.num_classes()).filter_map(|class| test.labels().iter().position(|y| *y == class)).collect()
}

/// Original, masked, some chains, their mean, and the mean image of the class.
fn fill_rows(fill: &Fill, truth: &[Pixels], shown: &[usize]) -> Vec<Vec<Pixels>> {
    let of = |digits: &dyn Fn(usize) -> Pixels| shown.iter().map(|index| digits(*index)).collect();
    let masked = |index: usize| -> Pixels {
        std::array::from_fn(|pixel| if fill.seen[pixel] { truth[index][pixel] } else { 0.0 })
    };
    let class_mean = |index: usize| -> Pixels {
        let source = |pixel: usize| if fill.seen[pixel] { truth[index] } else { fill.class_means[index] };
        std::array::from_fn(|pixel| source(pixel)[pixel])
    };
    let mut rows = vec![of(&|index| truth[index]), of(&masked)];
    rows.extend(fill.chains.iter().take(SHOWN).map(|chain| of(&|index| chain[index])));
    rows.push(of(&|index| fill.mean_of_chains[index]));
    rows.push(of(&class_mean));
    rows
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Name, error, and what the error has less than that of the mean image of the class.
fn guess_rows(fill: &Fill) -> Vec<Vec<String>> {
    let reference = fill.guesses.iter().find(|guess| guess.name == CLASS_MEAN);
    let row = |guess: &crate::fill::Guess| {
        let against = reference.filter(|reference| reference.name != guess.name).map(|reference| {
            let (less, deviation) = paired(&reference.errors, &guess.errors);
            let better = guess.errors.iter().zip(&reference.errors).filter(|(a, b)| a < b).count();
            let share = percent(better as f64 / guess.errors.len() as f64);
            (format!("{less:+.4} ± {deviation:.4}"), share)
        });
        let (less, share) = against.unwrap_or_default();
        vec![guess.name.clone(), format!("{:.4}", mean(&guess.errors)), less, share]
    };
    fill.guesses.iter().map(row).collect()
}

fn print_rows(headers: &[&str], rows: &[Vec<String>]) {
    let headers: Vec<String> = headers.iter().map(ToString::to_string).collect();
    for row in std::iter::once(&headers).chain(rows) {
        let cells: String = row[1..].iter().map(|cell| format!("  {cell:>18}")).collect();
        println!("{:<44}{cells}", row[0]);
    }
}

/// Writes everything into the run directory and prints the main numbers.
pub fn write(
    subject: &Subject,
    test: &ImageSet,
    found: &Found,
    options: &Options,
    seconds: (f64, f64),
    device: &Device,
) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let truth = pixels(&test.all(device)?);
    let shown = first_of_each(test);
    let trained = match &options.checkpoint {
        Some(folder) => format!("read from {}", folder.display()),
        None => format!("{} iterations in {:.0} s", subject.recipe.iterations, seconds.0),
    };
    let recipe = &subject.recipe;
    let summary = [
        ("Test accuracy", format!("{} %", percent(subject.accuracy))),
        ("Training", trained),
        ("Chains", format!("step {}, noise {}", recipe.step_size, recipe.noise)),
        ("Training chains", format!("K = {}, ρ = {}", recipe.steps, recipe.restart)),
        ("Digits", format!("{} of the test set", test.len())),
        ("Seed", options.seed.to_string()),
        ("All uses", format!("{:.0} s", seconds.1)),
    ];
    for (name, value) in &summary {
        println!("{name:<20} {value}");
    }
    let mut page = Report::new("In-painting, restoration, change of class").summary(&summary);

    let headers = ["hidden half filled in by", "squared error", "less than class mean", "better on, %"];
    for fill in &found.fills {
        let table = guess_rows(fill);
        println!("\n{} hidden, n = {}: mean squared error there, [0, 1] pixels", fill.name, test.len());
        print_rows(&headers, &table);
        println!("clamped pixels that changed: {} of {}", fill.changed, fill.clamped);
        assert_eq!(fill.changed, 0, "the visible pixels are as they were, bit by bit");
        let picture = rows(&fill_rows(fill, &truth, &shown), device)?;
        picture.write_png(out(&format!("inpainted_{}.png", fill.name.replace(' ', "_"))))?;
        let steps = options.shortened(options.fill_steps, 10);
        page = page
            .section(
                format!("The {} hidden", fill.name),
                format!(
                    "Chains of {steps} steps on the hidden pixels under E(x, y), from uniform noise. Of the {} visible \
                     pixels in all chains, {} changed. Squared errors are means over the hidden pixels of all {} \
                     digits, in units of [0, 1] pixels; behind ± is the standard error of the difference over the \
                     digits. A single chain is the mean over the chains of their errors.",
                    fill.clamped,
                    fill.changed,
                    test.len()
                ),
            )
            .table(&headers, table)
            .image(
                picture.to_data_uri()?,
                format!("From the top: the digits; what is visible; {} chains; the mean of all {}; the mean image of the class.",
                    SHOWN.min(fill.chains.len()), fill.chains.len()),
            );
    }
    page = restorations(page, &found.restored, &truth, &shown, options, device)?;
    page = crossings(page, &found.crossed, &shown, options, device)?;
    page = classified(page, found, test.len());
    let path = out("report.html");
    page.write(&path)?;
    let results = numbers::to_json(subject, test, found, options);
    std::fs::write(out("inpaint.json"), format!("{results:#}\n"))
        .map_err(|source| Error::io(out("inpaint.json"), source))?;
    println!("\n{}", path.display());
    Ok(())
}

fn restorations(
    mut page: Report,
    restored: &[Restoration],
    truth: &[Pixels],
    shown: &[usize],
    options: &Options,
    device: &Device,
) -> Result<Report> {
    let steps = |index: usize| options.shortened(STEPS[index], 10);
    for (number, kind) in restored.iter().enumerate() {
        let mut table = vec![vec![
            "as corrupted".to_owned(),
            format!("{:.4}", kind.courses[0].errors[0]),
            percent(kind.courses[0].accuracy[0]),
            String::new(),
        ]];
        for course in &kind.courses {
            let (error, right) = (course.errors[course.chosen], course.accuracy[course.chosen]);
            // A chain that is told the class ends in what the model reads so: no merit of the restoration.
            let right = if course.given { String::new() } else { percent(right) };
            let cells =
                [course.name.to_owned(), format!("{error:.4}"), right, steps(course.chosen).to_string()];
            table.push(cells.to_vec());
        }
        let other = |(name, error): &(&str, f64)| {
            vec![(*name).to_owned(), format!("{error:.4}"), String::new(), String::new()]
        };
        table.extend(kind.others.iter().map(other));
        let headers = ["restored by", "squared error", "model right, %", "steps"];
        println!("\n{}, n = {}", kind.name, truth.len());
        print_rows(&headers, &table);
        let of = |digits: &[Pixels]| -> Vec<Pixels> { shown.iter().map(|index| digits[*index]).collect() };
        let mut tiles = vec![of(truth), of(&kind.corrupted)];
        tiles.extend(kind.courses.iter().map(|course| of(&course.restored)));
        let picture = rows(&tiles, device)?;
        picture.write_png(options.out.join(format!("restored_{number}.png")))?;
        let chart = kind.courses.iter().fold(
            Chart::new(format!("Restored from {}", kind.name), "steps", "mean squared error, [0, 1] pixels"),
            |chart, course| {
                let points = course.errors.iter().enumerate().map(|(i, error)| (steps(i) as f64, *error));
                chart.with_series(course.name, points.collect::<Vec<_>>())
            },
        );
        page = page
            .section(
                format!("Restored from {}", kind.name),
                "Chains from the corrupted digits. The number of steps has the lowest error on corrupted training digits. \
                 E(x, y) is told the class, E(x) is not: what it may spoil shows in the share that the model then classifies right.",
            )
            .table(&headers, table)
            .image(
                picture.to_data_uri()?,
                "From the top: the digits; corrupted; after the chain on E(x, y); after that on E(x).",
            )
            .svg(chart.to_svg()?, "The error falls while noise goes, and rises again as the chain forgets the digit.");
    }
    Ok(page)
}

fn crossings(
    page: Report,
    crossed: &[Stage],
    shown: &[usize],
    options: &Options,
    device: &Device,
) -> Result<Report> {
    let row = |stage: &Stage| {
        vec![
            stage.steps.to_string(),
            percent(stage.by_model),
            percent(stage.by_neighbour),
            percent(stage.by_neighbour_before),
            format!("{:.4}", stage.distance),
        ]
    };
    let table: Vec<Vec<String>> = crossed.iter().map(row).collect();
    let headers =
        ["steps", "read as asked, %", "neighbour as asked", "neighbour as before", "squared distance"];
    println!("\nfrom each digit of class a under E(·, a + 1)");
    print_rows(&headers, &table);
    let strip = |index: &usize| crossed.iter().map(|stage| stage.digits[*index]).collect();
    let picture = rows(&shown.iter().map(strip).collect::<Vec<_>>(), device)?;
    picture.write_png(options.out.join("cross_class.png"))?;
    let steps = crossed.iter().map(|stage| stage.steps.to_string()).collect::<Vec<_>>().join(", ");
    Ok(page
        .section(
            "Change of class",
            "Chains that start from digits of class a under E(x, a + 1), and from a nine under E(x, 0). Read as asked: \
             by the model itself. The class of the nearest training digit judges without it. Distances are from the \
             digit that the chain started from.",
        )
        .table(&headers, table)
        .image(picture.to_data_uri()?, format!("The first digit of each class after {steps} steps.")))
}

fn classified(page: Report, found: &Found, count: usize) -> Report {
    let attacks = ATTACKS.iter().map(|radius| format!("PGD {:.0}/255", 255.0 * radius));
    let kinds = ["salt and pepper", "noise"].map(str::to_owned);
    let headers: Vec<String> =
        ["rule".to_owned(), "clean".to_owned()].into_iter().chain(kinds).chain(attacks).collect();
    let row = |rule: &Rule| -> Vec<String> {
        let shares = [rule.clean].into_iter().chain(rule.corrupted.clone()).chain(rule.attacked.clone());
        std::iter::once(rule.name.to_owned()).chain(shares.map(percent)).collect()
    };
    let table: Vec<Vec<String>> = found.rules.iter().map(row).collect();
    let radius = 255.0 * RADIUS;
    println!(
        "\nclassified right, %, n = {count} (PGD: {ATTACKED} a class); refinement within {radius:.0}/255"
    );
    print_rows(&headers.iter().map(String::as_str).collect::<Vec<_>>(), &table);
    page.section(
        "Classification, % right",
        format!(
            "By the lowest energy: of the image as it came; of what {REFINEMENT_STEPS} steps under each label make of it; of what \
             they make of it under E(x). No pixel goes farther than {radius:.0}/255. PGD: {ATTACK_STEPS} steps in L∞ from \
             one start, on {ATTACKED} digits of each class, through the refinement as if it were the identity."
        ),
    )
    .table(&headers, table)
}
