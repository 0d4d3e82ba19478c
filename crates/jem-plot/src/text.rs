//! Text on its way into a document: escaped, shortened to a width, and numbers in few characters.

/// `text` for the inside of an HTML or XML element or attribute; control characters become spaces.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// About how many pixels `text` takes at a font size: no font is at hand, so this is on the wide side.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.58
}

/// `text` on one line, shortened with an ellipsis at its end to fit into `room` pixels at a font size.
pub(super) fn clip(text: &str, room: f64, size: f64) -> String {
    shortened(text, room, size, |kept| (kept, 0))
}

/// Like [`clip`], but the middle is left out: names in a row often differ at their ends.
pub(super) fn clip_middle(text: &str, room: f64, size: f64) -> String {
    shortened(text, room, size, |kept| (kept.div_ceil(2), kept / 2))
}

fn shortened(text: &str, room: f64, size: f64, split: fn(usize) -> (usize, usize)) -> String {
    let printable = |c: char| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c };
    let line: Vec<char> = text.chars().map(printable).collect();
    let kept = (room / (size * 0.58)).floor().max(2.0) as usize;
    if line.len() <= kept {
        return line.into_iter().collect();
    }
    let (start, end) = split(kept - 1);
    line[..start].iter().chain(&['…']).chain(&line[line.len() - end..]).collect()
}

/// A number with about four significant digits, such as `-12.35`, `20k`, `3.1e-5`, `not finite`.
pub(super) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "not finite".to_owned();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let decimals = 3 - size.log10().floor().clamp(-6.0, 6.0) as i32;
    numbers(value, size, 10f64.powi(-decimals))
}

/// `value` for an axis whose largest magnitude is `size` and whose ticks are `step` apart.
pub(super) fn numbers(value: f64, size: f64, step: f64) -> String {
    if !(1e-3..1e15).contains(&size) {
        let digits = (size.log10().floor() - step.log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) if value != 0.0 => format!("{}e{exponent}", trim(mantissa)),
            _ => "0".to_owned(),
        };
    }
    let (unit, suffix) = match size {
        s if s < 1e4 => (1.0, ""),
        s if s < 1e6 => (1e3, "k"),
        s if s < 1e9 => (1e6, "M"),
        s if s < 1e12 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let decimals = (-(step / unit).log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize;
    let text = trim(&format!("{:.decimals$}", value / unit));
    if text == "0" { text } else { text + suffix }
}

/// Without zeros after the last decimal, and without a negative zero.
fn trim(text: &str) -> String {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_gone() {
        assert_eq!(escape("<a b=\"c\">&'\u{0}\n"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39; \n");
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        assert_eq!(clip("short\nline", 1000.0, 10.0), "short line");
        let cut = clip("äöü and a great deal more", 60.0, 10.0);
        assert!(cut.ends_with('…') && cut.starts_with("äöü") && width(&cut, 10.0) <= 60.0, "{cut}");
        assert_eq!(clip("abc", 0.0, 10.0), "a…");
        assert_eq!(clip_middle("superclass number 17", 60.0, 10.0), "super…r 17");
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-12.345_67, "-12.35"),
            (20_000.0, "20k"),
            (-1.5e6, "-1.5M"),
            (3.1e-5, "3.1e-5"),
            (1e200, "1e200"),
            (0.25, "0.25"),
            (f64::NAN, "not finite"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!(numbers(-0.0001, 1.0, 0.5), "0");
        assert_eq!(numbers(0.30000000000000004, 1.0, 0.1), "0.3");
    }
}
