"""Writes metrics.json: inputs, and what scikit-learn, SciPy, NumPy and ArviZ say of them.

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 arviz==0.23.4
    venv/bin/python tests/reference/metrics.py

Python 3.11. Inputs are rounded to a few decimals before anything is computed from them, so that the file is
short and both sides read the same numbers. `tests/suite/metrics.rs` compares this crate with it.
"""

import json
import pathlib
import warnings

import arviz as az
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats
from arviz.stats.diagnostics import _rhat, _split_chains, _z_scale
from sklearn import metrics
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.neighbors import NearestNeighbors

warnings.simplefilter("error")
rng = np.random.default_rng(20240229)


# Calibration


def calibration_error(confidence, correct, edges):
    """Bins (edges[b], edges[b+1]]; the expected and the maximum calibration error."""
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, len(edges) - 2)
    return gaps(confidence, correct, bins)


def calibration_error_equal_mass(confidence, correct, num_bins):
    """Bins of equal mass that begin at a value; equal values share a bin."""
    n = len(confidence)
    starts = np.unique(np.sort(confidence)[np.arange(num_bins) * n // num_bins])
    return gaps(confidence, correct, np.searchsorted(starts, confidence, side="right") - 1)


def gaps(confidence, correct, bins):
    found = []
    for b in np.unique(bins):
        inside = bins == b
        found.append((inside.mean(), abs(correct[inside].mean() - confidence[inside].mean())))
    return sum(w * g for w, g in found), max(g for _, g in found)


def calibration_case(name, labels, logits=None, probabilities=None):
    p = scipy.special.softmax(logits, axis=1) if logits is not None else probabilities
    classes = p.shape[1]
    labels = np.asarray(labels)
    confidence, predicted = p.max(axis=1), p.argmax(axis=1)
    correct = (predicted == labels).astype(float)
    one_hot = np.eye(classes)[labels]
    scaled = p / p.sum(axis=1, keepdims=True)  # log_loss wants sums of exactly 1
    nll = metrics.log_loss(labels, scaled, labels=np.arange(classes))
    if logits is None:
        nll = -np.log(p[np.arange(len(labels)), labels]).mean()
        assert abs(nll - metrics.log_loss(labels, scaled, labels=np.arange(classes))) < 1e-4
    brier = ((p - one_hot) ** 2).sum(axis=1).mean()
    if classes == 2 and len(set(labels)) == 2:
        assert np.isclose(brier, 2 * metrics.brier_score_loss(labels, scaled[:, 1]), atol=1e-4)
    errors = []
    for num_bins in (10, 15, 20):
        wide = calibration_error(confidence, correct, np.arange(num_bins + 1) / num_bins)
        mass = calibration_error_equal_mass(confidence, correct, num_bins)
        errors.append({"num_bins": num_bins, "equal_width": wide, "equal_mass": mass})
    return {
        "name": name,
        "classes": classes,
        "labels": labels,
        "logits": None if logits is None else logits.ravel(),
        "probabilities": None if probabilities is None else probabilities.ravel(),
        "accuracy": metrics.accuracy_score(labels, predicted),
        "nll": nll,
        "brier": brier,
        "errors": errors,
    }


def logits_and_labels(n, classes, sharpness, truth, prior=None):
    """Logits of some sharpness, and labels drawn from softmax(truth * logits + log prior)."""
    logits = np.round(rng.normal(size=(n, classes)) * sharpness, 3)
    odds = truth * logits + (0 if prior is None else np.log(prior))
    p = scipy.special.softmax(odds, axis=1)
    return logits, np.array([rng.choice(classes, p=row) for row in p])


def calibration():
    cases = []
    for name, n, classes, sharpness, truth, prior in [
        ("two classes", 150, 2, 2.0, 0.5, None),
        ("ten classes", 100, 10, 3.0, 0.4, None),
        ("unbalanced", 120, 3, 2.0, 0.7, [0.9, 0.08, 0.02]),
        ("few", 3, 4, 1.0, 1.0, None),
    ]:
        logits, labels = logits_and_labels(n, classes, sharpness, truth, prior)
        cases.append(calibration_case(name, labels, logits=logits))
    logits, _ = logits_and_labels(40, 3, 2.0, 1.0)
    cases.append(calibration_case("one class only", np.full(40, 1), logits=logits))
    cases.append(calibration_case("one example", [1], logits=np.array([[0.3, -0.2, 1.0]])))
    # Confidences on a grid: ties, and values on the edges of bins.
    first = rng.integers(1, 20, size=80) / 20
    p = np.round(np.stack([first, 1 - first], axis=1), 2)
    labels = (rng.random(80) > first).astype(int)
    cases.append(calibration_case("grid of two classes", labels, probabilities=p))
    share = rng.multinomial(10, np.full(10, 0.1), size=90) / 10
    p = np.round(0.9 * share + 0.01, 4)  # no label has the probability 0
    labels = np.array([rng.choice(10, p=row / row.sum()) for row in p])
    cases.append(calibration_case("grid of ten classes", labels, probabilities=p))
    return cases


def temperature():
    cases = []
    for name, n, classes, sharpness, truth, prior in [
        ("overconfident", 200, 2, 3.0, 0.4, None),
        ("underconfident", 150, 2, 0.5, 4.0, None),
        ("ten classes", 150, 10, 2.0, 0.5, None),
        ("unbalanced", 150, 3, 2.0, 0.8, [0.85, 0.1, 0.05]),
        ("few", 6, 3, 2.0, 0.2, None),
    ]:
        logits, labels = logits_and_labels(n, classes, sharpness, truth, prior)

        def nll(log_t, order=0):
            scaled = logits * np.exp(-log_t)
            if order == 0:
                chosen = scaled[np.arange(n), labels]
                return (scipy.special.logsumexp(scaled, axis=1) - chosen).mean()
            p = scipy.special.softmax(scaled, axis=1)
            return ((p * logits).sum(axis=1) - logits[np.arange(n), labels]).mean()

        found = scipy.optimize.minimize_scalar(nll, bracket=(-1, 1), tol=1e-10)
        assert found.success
        # Minimisation knows the place to the root of machine precision; the root of the slope is sharper.
        log_t = scipy.optimize.brentq(lambda t: nll(t, 1), found.x - 0.1, found.x + 0.1, xtol=1e-13)
        assert abs(log_t - found.x) < 1e-6
        cases.append(
            {
                "name": name,
                "classes": classes,
                "logits": logits.ravel(),
                "labels": labels,
                "temperature": np.exp(log_t),
                "nll": nll(log_t),
            }
        )
    return cases


# Detection


def detection_case(name, positives, negatives):
    labels = np.r_[np.ones(len(positives)), np.zeros(len(negatives))]
    scores = np.r_[positives, negatives]
    fpr, tpr, thresholds = metrics.roc_curve(labels, scores, drop_intermediate=False)
    case = {
        "name": name,
        "positives": positives,
        "negatives": negatives,
        "auroc": metrics.roc_auc_score(labels, scores),
        "average_precision": metrics.average_precision_score(labels, scores),
        "fpr95": fpr[np.argmax(tpr >= 0.95)],
        "fpr80": fpr[np.argmax(tpr >= 0.8)],
        "curve": None,
    }
    if len(scores) < 40:
        case["curve"] = np.stack([thresholds[1:], tpr[1:], fpr[1:]], axis=1)  # thresholds[0] is infinite
    return case


def detection():
    normal = lambda n, shift, decimals: np.round(rng.normal(size=n) + shift, decimals)
    return [
        detection_case("continuous", normal(150, 1.0, 6), normal(200, 0.0, 6)),
        detection_case("ties", normal(120, 0.7, 1), normal(90, 0.0, 1)),
        detection_case("many ties", normal(40, 0.5, 0), normal(60, 0.0, 0)),
        detection_case("few positives", normal(10, 1.0, 3), normal(300, 0.0, 3)),
        detection_case("few negatives", normal(300, 1.0, 3), normal(7, 0.0, 3)),
        detection_case("reversed", normal(60, -1.0, 3), normal(60, 0.0, 3)),
        detection_case("small", normal(20, 0.8, 1), normal(15, 0.0, 1)),
        detection_case("one and one", [0.3], [0.7]),
        detection_case("constant", [0.5] * 4, [0.5] * 6),
    ]


# Generation


def features(n, d, shift=0.0, correlation=True, decimals=3):
    x = rng.normal(size=(n, d))
    if correlation:
        x = x @ rng.normal(size=(d, d)) / np.sqrt(d)
    return np.round(x + shift, decimals)


def kernel_distance(x, y):
    k = lambda a, b: polynomial_kernel(a, b, degree=3, gamma=1 / x.shape[1], coef0=1)
    xx, yy, xy = k(x, x), k(y, y), k(x, y)
    m, n = len(x), len(y)
    within = (xx.sum() - np.trace(xx)) / (m * (m - 1)) + (yy.sum() - np.trace(yy)) / (n * (n - 1))
    return within - 2 * xy.mean()


def frechet_distance(x, y):
    """By scipy.linalg.sqrtm where the covariances have full rank; else tr (S1 S2)^1/2 is the nuclear norm of
    A1 A2^T with S = A^T A, which needs no root of a singular matrix. Both are computed and must agree."""
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    a, b = a / np.sqrt(len(x) - 1), b / np.sqrt(len(y) - 1)
    s1, s2 = np.atleast_2d(np.cov(x, rowvar=False)), np.atleast_2d(np.cov(y, rowvar=False))
    cross = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    if min(len(x), len(y)) > x.shape[1]:
        by_root = np.trace(scipy.linalg.sqrtm(s1 @ s2)).real
        assert np.isclose(cross, by_root, rtol=1e-9), (cross, by_root)
        cross = by_root
    return ((x.mean(axis=0) - y.mean(axis=0)) ** 2).sum() + np.trace(s1) + np.trace(s2) - 2 * cross


def sets():
    cases = []
    for name, x, y in [
        ("alike", features(40, 4), features(30, 4)),
        ("shifted", features(25, 3, 0.0), features(35, 3, 1.5)),
        ("far from zero", features(30, 3, 100.0), features(30, 3, 101.0)),
        ("of another width", features(40, 5), np.round(3 * features(20, 5), 3)),
        ("one dimension", features(12, 1), features(9, 1)),
        ("fewer samples than dimensions", features(4, 8), features(5, 8)),
        ("two samples", features(2, 3), features(2, 3, 0.5)),
        ("more dimensions", features(40, 16), features(40, 16, 0.2)),
    ]:
        found = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(x).kneighbors(y)
        cases.append(
            {
                "name": name,
                "dimension": x.shape[1],
                "first": x.ravel(),
                "second": y.ravel(),
                "frechet": frechet_distance(x, y),
                "kernel": kernel_distance(x, y),
                "neighbour_distances": found[0].ravel(),
                "neighbour_indices": found[1].ravel(),
            }
        )
    return cases


def inception_scores():
    cases = []
    for name, n, classes, sharpness, splits in [
        ("two classes", 60, 2, 2.0, 3),
        ("ten classes", 75, 10, 3.0, 1),
        ("ten classes in uneven splits", 75, 10, 3.0, 4),
        ("flat", 20, 5, 0.01, 2),
    ]:
        logits, _ = logits_and_labels(n, classes, sharpness, 1.0)
        p = scipy.special.softmax(logits, axis=1)
        scores = []
        for i in range(splits):
            part = p[i * n // splits : (i + 1) * n // splits]
            scores.append(np.exp(scipy.stats.entropy(part, part.mean(axis=0)[None], axis=1).mean()))
        cases.append(
            {
                "name": name,
                "classes": classes,
                "logits": logits.ravel(),
                "splits": splits,
                "mean": np.mean(scores),
                "standard_deviation": np.std(scores),
                "counts": np.bincount(p.argmax(axis=1), minlength=classes),
            }
        )
    return cases


# Chains


def autoregressive(chains, draws, phi, decimals=4):
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * rng.normal(size=chains)
    return np.round(x, decimals)


def metropolis(chains, draws, step):
    """Random-walk Metropolis on N(0, 1): draws repeat where a proposal was refused."""
    x = rng.normal(size=chains)
    rows = []
    for _ in range(draws):
        proposal = x + step * rng.normal(size=chains)
        accept = np.log(rng.random(chains)) < (x**2 - proposal**2) / 2
        x = np.where(accept, proposal, x)
        rows.append(x)
    return np.round(np.array(rows).T, 4)


def rhat(x):
    if len(x) > 1:
        return float(az.rhat(x, method="rank"))
    # ArviZ asks for two chains; the halves of one are two. The same functions without that question.
    halves = _split_chains(x)
    return max(_rhat(_z_scale(halves)), _rhat(_z_scale(abs(halves - np.median(halves)))))


def chains():
    scaled = autoregressive(4, 100, 0.3)
    scaled[3] = np.round(4 * scaled[3], 4)
    shifted = autoregressive(4, 100, 0.2)
    shifted[0] += 1.0
    stuck = autoregressive(3, 60, 0.5)
    stuck[1] = stuck[1, 0]
    trend = np.round(np.linspace(-2, 2, 120)[None] + autoregressive(2, 120, 0.3), 4)
    cases = []
    for name, x in [
        ("independent", autoregressive(4, 150, 0.0)),
        ("correlated", autoregressive(4, 250, 0.9)),
        ("slow", autoregressive(4, 200, 0.99)),
        ("antithetic", autoregressive(4, 150, -0.6)),
        ("one chain is elsewhere", np.round(shifted, 4)),
        ("one chain is wider", scaled),
        ("one chain is stuck", stuck),
        ("two chains", autoregressive(2, 101, 0.5)),
        ("one chain", autoregressive(1, 200, 0.7)),
        ("a trend", trend),
        ("refused proposals", metropolis(4, 150, 5.0)),
        ("whole numbers", rng.poisson(3.0, size=(4, 100)).astype(float)),
        ("heavy tails", np.round(rng.standard_cauchy(size=(4, 120)), 3)),
        ("few draws", autoregressive(3, 9, 0.2)),
        ("fewest draws", autoregressive(2, 4, 0.0)),
        ("far from zero", np.round(1e4 + autoregressive(4, 60, 0.4), 4)),
    ]:
        ess = lambda method: float(az.ess(x, method=method))
        stuck_chain = (np.ptp(x, axis=1) == 0).any()
        lags = min(20, x.shape[1] - 1)
        cases.append(
            {
                "name": name,
                "chains": len(x),
                "draws": x.ravel(),
                "rhat": rhat(x),
                "ess_bulk": ess("bulk"),
                "ess_tail": ess("tail"),
                "ess_mean": ess("mean"),
                "mcse_mean": float(az.mcse(x, method="mean")),
                "autocorrelation": None if stuck_chain else az.autocorr(x)[:, : lags + 1].ravel(),
            }
        )
    return cases


def plain(value):
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    # Nobody reads more than twelve digits of an expected number, and shorter ones keep the file small.
    return float(f"{value:.12g}") if isinstance(value, float) else value


result = {
    "calibration": calibration(),
    "temperature": temperature(),
    "detection": detection(),
    "sets": sets(),
    "inception_scores": inception_scores(),
    "chains": chains(),
}
path = pathlib.Path(__file__).with_name("metrics.json")
lines = []
for key, cases in result.items():
    body = ",\n".join(json.dumps(plain(case), separators=(",", ":"), allow_nan=False) for case in cases)
    lines.append(f'"{key}":[\n{body}\n]')
path.write_text("{" + ",\n".join(lines) + "}\n")
print(path, path.stat().st_size, "bytes")
