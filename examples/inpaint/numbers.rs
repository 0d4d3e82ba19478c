//! The numbers of a run, as JSON.

use jem_core::data::ImageSet;
use serde_json::{Value, json};

use crate::classify::{ATTACKS, Rule};
use crate::cross::Stage;
use crate::fill::Fill;
use crate::guesses::mean;
use crate::options::Options;
use crate::report::Found;
use crate::restore::{Restoration, STEPS};
use crate::train::Subject;

/// Everything that was measured, and with what.
pub fn to_json(subject: &Subject, test: &ImageSet, found: &Found, options: &Options) -> Value {
    let fill = |fill: &Fill| {
        let guesses =
            fill.guesses.iter().map(|guess| json!({"by": guess.name, "squared_error": mean(&guess.errors)}));
        json!({"hidden": fill.name, "clamped_pixels": fill.clamped, "changed": fill.changed,
            "guesses": guesses.collect::<Vec<_>>()})
    };
    let restoration = |kind: &Restoration| {
        let courses = kind.courses.iter().map(|course| {
            json!({"by": course.name, "squared_errors": course.errors, "accuracy": course.accuracy,
                "chosen_steps": STEPS[course.chosen]})
        });
        json!({"corruption": kind.name, "steps": STEPS, "courses": courses.collect::<Vec<_>>(),
            "others": kind.others.iter().map(|(by, error)| json!({"by": by, "squared_error": error})).collect::<Vec<_>>()})
    };
    let rule = |rule: &Rule| {
        json!({"by": rule.name, "clean": rule.clean, "corrupted": rule.corrupted, "attack_radii": ATTACKS,
            "attacked": rule.attacked})
    };
    let stage = |stage: &Stage| {
        json!({"steps": stage.steps, "by_model": stage.by_model, "by_neighbour": stage.by_neighbour,
            "by_neighbour_before": stage.by_neighbour_before, "squared_distance": stage.distance})
    };
    json!({
        "recipe": subject.recipe, "accuracy": subject.accuracy, "test_digits": test.len(), "seed": options.seed,
        "chains": found.fills.first().map(|fill| fill.chains.len()), "fill_steps": options.shortened(options.fill_steps, 10),
        "inpainting": found.fills.iter().map(fill).collect::<Vec<_>>(),
        "restoration": found.restored.iter().map(restoration).collect::<Vec<_>>(),
        "cross_class": found.crossed.iter().map(stage).collect::<Vec<_>>(),
        "classification": found.rules.iter().map(rule).collect::<Vec<_>>(),
    })
}
