"""Pictures with their captions, keys and descriptions for those who do not see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from rhale_stats.answers.numbers import axis_texts, percent
from rhale_stats.printing.text import count_text
from rhale_stats.reporting import pictures
from rhale_stats.reporting.pictures import MAX_GROUPS, NARROW, WIDE, Drawing, mark_of
from rhale_stats.reporting.reading import Group, ReportContent, ReportFeature
from rhale_stats.reporting.words import Words, number_text, typeset

PANEL = 300.0
MAX_VALUES = 7
Key = tuple[tuple[Markup, str], ...]


@dataclass(frozen=True)
class Picture:
    """A picture in two widths, of which the style sheet shows one; or in one width.

    That of a notebook has its description in it, and no anchor.
    """

    caption: str
    wide: Markup
    key: Key = ()
    anchor: str = ""
    number: int = 0
    alt: str = ""
    narrow: Markup | None = None


def _picture(
    anchor: str, number: int, draw: Callable[[float], Drawing], words: tuple[str, str], key: Key
) -> Picture:
    caption, alt = words
    ids = (f"{anchor}-caption", f"{anchor}-alt")
    wide, narrow = (
        draw(width).markup(kind, *ids) for kind, width in (("wide", WIDE), ("narrow", NARROW))
    )
    return Picture(caption, wide, key, anchor, number, alt, narrow)


def _panel(anchor: str, drawing: Drawing, caption: str, alt: str) -> Picture:
    """A small picture, which has no number."""
    wide = drawing.markup("panel", f"{anchor}-caption", f"{anchor}-alt")
    return Picture(caption, wide, anchor=anchor, alt=alt)


def rows_text(n_rows: int) -> str:
    """A number of rows."""
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def overview_picture(
    content: ReportContent, features: tuple[ReportFeature, ...], t: Words
) -> Picture:
    """How much each feature moves the predictions."""
    first = " ".join(
        t.which_alt_one.format(
            name=feature.label,
            average=number_text(feature.average.value),
            rows=number_text(feature.rows.value),
        )
        for feature in features[:MAX_VALUES]
    )
    alt = t.which_alt.format(n=count_text(len(features), "feature"), first=first)
    threshold = number_text(content.threshold)
    key = (
        (mark_of("average").swatch(), t.average_key),
        (mark_of("rows").swatch(), t.rows_key),
        (mark_of("small").swatch(), t.which_key.format(threshold=threshold)),
    )
    caption = t.which_caption.format(level=percent(content.level))
    return _picture(
        "overview",
        1,
        lambda width: pictures.overview(features, content.threshold, width),
        (caption, alt),
        key,
    )


def feature_picture(
    feature: ReportFeature, number: int, content: ReportContent, t: Words
) -> Picture:
    """The effect of one feature."""
    caption = t.curve_caption
    if feature.difference is not None:
        caption = t.two_caption.format(
            first=feature.levels[0],
            second=feature.levels[1],
            feature="{feature}",
            output="{output}",
        )
    words = (
        caption.format(feature=feature.shown, output=content.shown),
        described(feature, content, t),
    )
    return _picture(
        f"{feature.anchor}-picture",
        number,
        lambda width: pictures.of_feature(feature, width, 4 * content.threshold, t),
        words,
        key_of(feature, t),
    )


def largest_picture(feature: ReportFeature, content: ReportContent, t: Words) -> Picture:
    """The average curve of a feature alone, before the first table."""
    alone = replace(feature, windows=None, outcome={}, groups=())
    anchor = f"{feature.anchor}-first"
    drawing = pictures.of_feature(alone, NARROW, 4 * content.threshold, t)
    drawing.places = drawing.places[:0]
    caption = f"{feature.shown}: {feature.shape}" if feature.shape else feature.shown
    return _panel(anchor, drawing, typeset(caption), described(alone, content, t))


def key_of(feature: ReportFeature, t: Words) -> Key:
    """The marks that a picture has, and what they mean."""
    if feature.levels:
        average = mark_of("average"), t.average_of_level.format(band=feature.band)
        of_groups = any(group.difference for group in feature.leaves)
        of_rows = feature.difference is not None and feature.difference[1] is not None
        key = [
            average,
            *([(mark_of("part"), t.part_key)] if feature.difference and of_groups else []),
            *([(mark_of("across"), t.across_key)] if of_rows else []),
        ]
    else:
        groups = enumerate(feature.leaves[:MAX_GROUPS])
        key = [
            (mark_of("band"), t.band_key.format(band=feature.band)),
            *((mark_of("group", number), _group_text(group, t)) for number, group in groups),
            *([(mark_of("few"), t.few_key)] if feature.stretches else []),
            *([(mark_of("strip"), t.strip_key)] if feature.windows else []),
        ]
    return tuple((mark.swatch(), text) for mark, text in key)


def _group_text(group: Group, t: Words) -> str:
    return str(t.group_key.format(rule=group.rule, rows=rows_text(group.n_rows)))


def described(feature: ReportFeature, content: ReportContent, t: Words) -> str:
    """The picture in words: some values, the width of the band, the highest place of groups."""
    curve = feature.curve if feature.levels else pictures.drawn(feature.curve, feature.stretches)
    finite = np.flatnonzero(np.isfinite(curve.y))
    feature = replace(feature, curve=curve)
    places = [place_of(feature, k) for k in range(len(curve.y))]
    chosen = finite
    if len(finite) > MAX_VALUES:
        chosen = finite[np.linspace(0, len(finite) - 1, MAX_VALUES).round().astype(int)]
    values = "; ".join(f"{places[k]}: {number_text(curve.y[k])}" for k in chosen)
    half = (curve.high - curve.low) / 2
    width = ""
    if np.isfinite(half).any():
        widest = number_text(float(np.nanmax(half)))
        width = t.width_alt.format(band=feature.band, width=widest)
    kind = t.levels_kind if feature.levels else t.strip_kind if feature.windows else t.curve_kind
    text: str = t.curve_alt.format(
        kind=kind,
        feature=feature.label,
        first=places[0] if places else "",
        last=places[-1] if places else "",
        output=content.shown,
        values=values or t.unknown,
        width=width,
        groups="".join(_group_alt(group, feature, t) for group in feature.leaves[:MAX_GROUPS]),
    )
    return text


def place_of(feature: ReportFeature, k: int) -> str:
    """The k-th point of the curve: a level, or a place on the axis."""
    if feature.levels:
        return feature.levels[k]
    return place(float(feature.curve.x[k]), feature)


def place(x: float, feature: ReportFeature) -> str:
    """A place on the axis of a feature."""
    return typeset(axis_texts(np.append(feature.curve.x, x), feature.units)[-1])


def _group_alt(group: Group, feature: ReportFeature, t: Words) -> str:
    y = group.curve.y
    if not np.isfinite(y).any():
        return ""
    highest = int(np.nanargmax(y))
    highest_place = place(float(group.curve.x[highest]), feature)
    return str(
        t.group_alt.format(rule=group.rule, value=number_text(y[highest]), place=highest_place)
    )


def small_overview(
    content: ReportContent, features: tuple[ReportFeature, ...], t: Words
) -> Picture:
    """How much each feature moves the predictions, for a notebook."""
    whole = overview_picture(content, features, t)
    drawn = pictures.overview(features, content.threshold, WIDE).named("wide", whole.alt)
    return Picture(whole.caption, drawn, whole.key)


def small_feature(feature: ReportFeature, content: ReportContent, t: Words) -> Picture:
    """The effect of one feature, for a notebook."""
    drawn = pictures.of_feature(feature, NARROW, 4 * content.threshold, t)
    caption = t.curve_caption.format(feature=feature.shown, output=content.shown)
    return Picture(caption, drawn.named("narrow", described(feature, content, t)))


def group_panels(feature: ReportFeature, t: Words) -> tuple[Picture, ...]:
    """A small picture for each group of rows."""
    panels = []
    for number, group in enumerate(feature.leaves):
        y, x = group.curve.y, group.curve.x
        if not np.isfinite(y).any():
            continue
        anchor = f"{feature.anchor}-group-{number}"
        (high, high_at), (low, low_at) = (
            (number_text(float(y[k])), place(float(x[k]), feature))
            for k in (int(np.nanargmax(y)), int(np.nanargmin(y)))
        )
        alt = t.panel_alt.format(high=high, high_at=high_at, low=low, low_at=low_at)
        caption = t.panel_caption.format(rule=group.rule, rows=rows_text(group.n_rows))
        drawing = pictures.of_group(group, feature, number, PANEL)
        panels.append(_panel(anchor, drawing, caption, alt))
    return tuple(panels)
