"""Pictures of regions show what the Datasets say: artists' data, titles, scales, and bad input."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.offsetbox import AnnotationBbox, TextArea

import rhale_stats as rs
from rhale_stats.drawing import frame
from rhale_stats.drawing import tree as regions
from rhale_stats.drawing.frame import HETEROGENEITY_FILL
from rhale_stats.drawing.heat_maps import plot_interactions
from rhale_stats.drawing.tree import plot_regions, plot_tree
from tests.helpers import labelled

WHITE = (1.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def table():
    """x1 has opposite effects by x3, and where x3 > 0 steeper ones by the season."""
    rng = np.random.default_rng(31)
    frame = pd.DataFrame(rng.uniform(-1, 1, (600, 3)), columns=["x1", "x2", "x3"])
    frame["summer"] = rng.choice(["no", "yes"], 600)
    return frame


@pytest.fixture(scope="module")
def local(table):
    steep = np.where(table["x3"] > 0, np.where(table["summer"] == "yes", 6.0, 3.0), -3.0)
    jacobian = np.zeros((600, 4))
    jacobian[:, 0] = steep + np.random.default_rng(1).normal(0, 0.1, 600)
    jacobian[:, 2] = 1.0
    X = table[["x1", "x2", "x3"]].assign(flat=7.0)
    X.attrs = {"units": {"x1": "mg"}, "output_name": "pressure", "output_units": "mmHg"}
    found = rs.local_effects(None, X, jacobian=jacobian, features=["x1", "x2", "x3", "flat"])
    for variable in found.variables.values():
        variable.values.flags.writeable = False
    return found


@pytest.fixture(scope="module")
def tree(table, local):
    return rs.regions(local, "x1", conditioning=table[["x2", "x3", "summer"]], min_drop=0.5)


@pytest.fixture(scope="module")
def effect(local, tree):
    return rs.regional_rhale(local, tree, weighting="rows")


@pytest.fixture(scope="module")
def found(local):
    rows = local.isel(obs=slice(300))
    return rs.interaction_matrix(rows, n_permutations=39, rng=0, adjust="none", progress=False)


def rugs(ax):
    return [artist for artist in ax.collections if artist.get_gid() == "rug"]


def boxes(ax):
    """Texts of the boxes of a tree, and where they stand."""
    found = {}
    for box in ax.findobj(AnnotationBbox):
        lines = [area.get_text() for area in box.findobj(TextArea)]
        found[tuple(box.xy)] = ("\n".join(lines), to_rgb(box.patch.get_facecolor()))
    return found


# -------------------------------------------------------------------------------------- regions


class TestRegions:
    def test_the_tree_that_is_drawn(self, tree):
        assert tree["rule"].values.tolist() == [
            "all rows",
            "x3 ≤ 0",
            "x3 > 0",
            "x3 > 0 and summer = no",
            "x3 > 0 and summer = yes",
        ]

    @pytest.mark.thorough
    def test_titles_are_the_rules_in_words(self, tree, effect):
        panels = plot_regions(tree, effect)
        assert panels.shape == (3,)
        for panel, node in zip(panels, (1, 3, 4), strict=True):
            rule, _, known = panel.get_title().rpartition("\n")
            assert rule.replace("\n", " ") == str(tree["rule"].values[node])
            n_obs, loss = int(tree["n_obs"][node]), float(tree["loss"][node])
            assert known == f"n = {n_obs}, loss {loss:.4g}"

    @pytest.mark.thorough
    def test_every_panel_has_the_curve_of_its_region(self, tree, effect):
        for number, panel in enumerate(plot_regions(tree, effect, spread="band")):
            row = effect.isel(region=number).rhale.in_bins().sel(feature="x1")
            edges = row["edge_value"].values
            known = np.isfinite(edges)
            line = labelled(panel, frame.CURVE)
            np.testing.assert_array_equal(line.get_xdata(), edges[known])
            np.testing.assert_array_equal(line.get_ydata(), row["curve"].values[known])
            (path,) = labelled(panel, frame.BAND).get_paths()
            upper = (row["curve"] + row["curve_std_sum"]).values[known]
            drawn = {tuple(vertex) for vertex in path.vertices}
            assert set(zip(edges[known], upper, strict=True)) <= drawn

    @pytest.mark.thorough
    def test_standard_errors_are_added_region_by_region(self, tree, effect):
        alone = rs.std_error(effect.isel(region=1))
        panel = plot_regions(tree, effect)[1]
        drawn = [line.get_ydata() for line in panel.lines if line.get_linestyle() == "--"]
        again, *_ = rs.plots.effect(alone, "x1")
        expected = [line.get_ydata() for line in again.lines if line.get_linestyle() == "--"]
        assert len(drawn) == 2
        np.testing.assert_array_equal(drawn, expected)

    @pytest.mark.thorough
    def test_intervals_and_bands_are_drawn_as_they_were_made(self, tree, effect):
        panels = plot_regions(tree, rs.confband(effect, level=0.9, rng=0))
        labels = panels[0].get_legend_handles_labels()[1]
        assert any(label.startswith("90 % band") for label in labels)

    @pytest.mark.thorough
    def test_global_panel_comes_first(self, local, tree, effect):
        panels = plot_regions(tree, effect, rs.rhale(local, weighting="rows"))
        assert len(panels) == 4
        assert panels[0].get_title() == f"all rows\nn = 600, loss {float(tree['loss'][0]):.4g}"
        whole = rs.rhale(local, weighting="rows").sel(feature="x1")
        drawn = labelled(panels[0], frame.CURVE).get_ydata()
        np.testing.assert_array_equal(drawn, whole["curve"].values[: len(drawn)])

    @pytest.mark.thorough
    def test_one_scale_holds_everything(self, local, tree, effect):
        panels = plot_regions(tree, effect, rs.rhale(local), spread="band")
        assert len({panel.get_ylim() for panel in panels}) == 1
        assert len({panel.get_xlim() for panel in panels}) == 1
        bottom, top = panels[0].get_ylim()
        for panel in panels:
            (path,) = labelled(panel, frame.BAND).get_paths()
            assert bottom < path.vertices[:, 1].min()
            assert path.vertices[:, 1].max() < top

    def test_labels_stand_at_the_borders_of_the_grid(self, local, tree, effect):
        panels = plot_regions(tree, effect, rs.rhale(local))
        # All rows, and beside them two regions above the third.
        assert [panel.get_ylabel() for panel in panels] == [
            *("effect on pressure [mmHg]", "", "", "effect on pressure [mmHg]"),
        ]
        assert [panel.get_xlabel() for panel in panels] == ["x1 [mg]", "", "x1 [mg]", "x1 [mg]"]

    @pytest.mark.thorough
    def test_one_legend_above(self, tree, effect):
        figure = plot_regions(tree, effect)[0].figure
        assert len(figure.legends) == 1
        texts = [text.get_text() for text in figure.legends[0].get_texts()]
        assert texts[0] == frame.CURVE
        assert len(texts) == 2

    @pytest.mark.thorough
    def test_rug_of_the_rows_of_the_region(self, local, tree, effect):
        everywhere, *panels = plot_regions(tree, effect, rs.rhale(local), local)
        (many,) = rugs(everywhere)
        assert isinstance(many, PolyCollection)  # ticks of 600 rows would merge
        x = local["x"].sel(feature="x1").values
        for number, panel in enumerate(panels):
            values = x[tree["region_of_row"].values == number]
            (rug,) = rugs(panel)
            ticks = np.array([segment[0, 0] for segment in rug.get_segments()])
            assert ticks.min() == pytest.approx(values.min())
            assert ticks.max() == pytest.approx(values.max())
            step = np.ptp(values) / 2000  # the grid of the rug
            assert max(np.abs(ticks - one).min() for one in values) <= step

    @pytest.mark.thorough
    def test_no_rug_without_rows(self, tree, effect):
        assert [rugs(panel) for panel in plot_regions(tree, effect)] == [[], [], []]

    @pytest.mark.thorough
    def test_given_axes(self, tree, effect):
        _, axes = plt.subplots(1, 3, layout="constrained")
        assert plot_regions(tree, effect, ax=axes).tolist() == axes.tolist()
        assert [ax.get_ylabel() for ax in axes] == ["effect on pressure [mmHg]"] * 3
        assert [ax.get_xlabel() for ax in axes] == ["x1 [mg]"] * 3

    def test_tree_without_splits(self, local):
        tree = rs.regions(local, "x2")
        (panel,) = plot_regions(tree, rs.regional_rhale(local, tree))
        assert panel.get_title() == "all rows\nn = 600, loss 0"

    def test_constant_feature(self, local):
        tree = rs.regions(local, "flat")
        (panel,) = plot_regions(tree, rs.regional_rhale(local, tree), local=local)
        assert [text.get_text() for text in panel.texts] == [frame.CONSTANT]
        assert panel.get_title() == "all rows\nn = 600"

    @pytest.mark.thorough
    def test_honest_tree_has_the_rows_that_judged_it(self, table, local):
        tree = rs.regions(
            local,
            "x1",
            conditioning=table[["x3"]],
            test="honest",
            n_permutations=19,
            rng=0,
        )
        effect = rs.regional_rhale(local, tree)
        panels = plot_regions(tree, effect, rs.rhale(local), local)
        # The global effect is of all rows, the loss of the root of half of them.
        assert panels[0].get_title() == "all rows\nn = 600"
        for number, panel in enumerate(panels[1:]):
            n_obs = int((tree["region_of_row"] == number).sum())
            assert f"n = {n_obs}, loss" in panel.get_title()
        assert int((tree["region_of_row"] >= 0).sum()) == 300

    @pytest.mark.thorough
    def test_one_of_several_trees(self, local):
        trees = rs.all_regions(local, ["x1", "x2"], progress=False)
        one = trees.sel(feature="x1")
        assert len(plot_regions(one, rs.regional_rhale(local, one))) == one["n_nodes"] // 2 + 1
        with pytest.raises(ValueError, match="this one is of 'x1', 'x2'"):
            plot_regions(trees, rs.regional_rhale(local, one))

    @pytest.mark.thorough
    def test_a_pruned_tree(self, table, local):
        tree = rs.regions(local, "x1", conditioning=table, n_folds=3, rng=0)
        panels = plot_regions(tree, rs.regional_rhale(local, tree))
        assert len(panels) == int((tree["region"] >= 0).sum())

    def test_something_else(self, local, tree, effect):
        with pytest.raises(
            TypeError, match=r"tree must be .* regions\(local, feature\).*got 'x1' of type str"
        ):
            plot_regions("x1", effect)
        with pytest.raises(TypeError, match=r"effect must be .* regional_rhale.*; got DataFrame"):
            plot_regions(tree, pd.DataFrame())
        with pytest.raises(ValueError, match="this one has no dimension region.*global_effect="):
            plot_regions(tree, rs.rhale(local))
        with pytest.raises(ValueError, match="effect must be of the feature .*'x1'; got 'x2'"):
            plot_regions(tree, rs.regional_rhale(local, rs.regions(local, "x2")))
        other = rs.regions(local, "x1", max_depth=1)
        with pytest.raises(ValueError, match="must have the regions of the tree, .*; got x3 ≤ 0; "):
            plot_regions(tree, rs.regional_rhale(local, other))

    def test_another_global_effect(self, local, tree, effect):
        with pytest.raises(ValueError, match="global_effect must be of one region.*of 3"):
            plot_regions(tree, effect, effect)
        with pytest.raises(KeyError, match="feature of the tree, 'x1'; it holds 'x2'"):
            plot_regions(tree, effect, rs.rhale(local.sel(feature=["x2"])))
        with pytest.raises(TypeError, match="global_effect must be .*; got int"):
            plot_regions(tree, effect, 3)

    def test_other_rows(self, local, tree, effect):
        with pytest.raises(ValueError, match="it has 10 rows and the tree 600"):
            plot_regions(tree, effect, local=local.isel(obs=slice(10)))
        with pytest.raises(KeyError, match="local must hold the feature 'x1'; it holds 'x2'"):
            plot_regions(tree, effect, local=local.sel(feature=["x2"]))

    def test_other_axes(self, local, tree, effect):
        _, axes = plt.subplots(1, 2)
        with pytest.raises(ValueError, match="3 matplotlib Axes, one a region; got 2"):
            plot_regions(tree, effect, ax=axes)
        with pytest.raises(ValueError, match="4 matplotlib Axes, of all rows, then .*; got 2"):
            plot_regions(tree, effect, rs.rhale(local), ax=axes)
        with pytest.raises(ValueError, match="ax must be 3 matplotlib Axes.*; got 1"):
            plot_regions(tree, effect, ax=axes[:1])

    @pytest.mark.parametrize(
        ("n_regions", "everywhere", "grid"),
        [
            (1, False, [(0, 0)]),
            (2, True, [(0, 0), (0, 1), (0, 2)]),
            (4, False, [(0, 0), (0, 1), (1, 0), (1, 1)]),
            (4, True, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)]),
            (5, True, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]),
        ],
    )
    def test_sides_of_a_split_are_neighbours(self, n_regions, everywhere, grid):
        panels = regions._panels(n_regions, everywhere=everywhere)
        spots = [panel.get_subplotspec() for panel in panels]
        assert [(spot.rowspan.start, spot.colspan.start) for spot in spots] == grid
        assert panels[0].figure.axes == panels or set(panels[0].figure.axes) == set(panels)

    @pytest.mark.parametrize(
        ("rule", "lines"),
        [
            ("x3 ≤ 0", ["x3 ≤ 0"]),
            ("x3 > 0 and x1 ≤ 2 and z = no", ["x3 > 0 and x1 ≤ 2 and", "z = no"]),
            (
                "a column with quite a long name ≤ 0.25 and x = 1",
                ["a column with quite a", "long name ≤ 0.25 and", "x = 1"],
            ),
        ],
    )
    def test_rules_break_between_conditions(self, rule, lines):
        assert regions.wrapped(rule, 24).splitlines() == lines

    @pytest.mark.thorough
    def test_names_are_not_formulas(self, local):
        money = pd.DataFrame(
            {"cost [$] of $": np.where(local["x"].sel(feature="x3") > 0, 1.0, 0.0)}
        )
        tree = rs.regions(local, "x1", conditioning=money)
        panels = plot_regions(tree, rs.regional_rhale(local, tree))
        assert "cost [$] of $ = 0" in panels[0].get_title()
        panels[0].figure.canvas.draw()
        plot_tree(tree).figure.canvas.draw()


# ----------------------------------------------------------------------------------------- tree


class TestTree:
    def test_boxes_have_what_the_nodes_have(self, tree):
        drawn = boxes(plot_tree(tree))
        # Leaves side by side, parents above the middle of their sides.
        assert set(drawn) == {(0.75, 0.0), (0.0, -1.0), (1.5, -1.0), (1.0, -2.0), (2.0, -2.0)}
        root, left = drawn[0.75, 0.0][0], drawn[0.0, -1.0][0]
        loss, drop = float(tree["loss"][0]), 100 * float(tree["loss_drop"][0])
        assert root == f"all rows\nn = 600, loss {loss:.4g}\nsplit: drop {drop:.3g} %, p < 0.001"
        assert left.splitlines()[0] == "x3 ≤ 0"
        assert left.splitlines()[2] == "region 0"
        assert drawn[1.0, -2.0][0].startswith("summer = no\nn = ")
        assert drawn[2.0, -2.0][0].splitlines()[2] == "region 2"

    def test_lines_join_parents_and_children(self, tree):
        lines = [tuple(map(tuple, line.get_xydata())) for line in plot_tree(tree).lines]
        assert lines == [
            ((0.75, 0.0), (0.0, -1.0)),
            ((0.75, 0.0), (1.5, -1.0)),
            ((1.5, -1.0), (1.0, -2.0)),
            ((1.5, -1.0), (2.0, -2.0)),
        ]

    def test_the_bluer_the_more_loss(self, tree):
        drawn = boxes(plot_tree(tree))
        assert drawn[0.75, 0.0][1] == pytest.approx(to_rgb(HETEROGENEITY_FILL), abs=0.01)
        assert drawn[0.0, -1.0][1] == pytest.approx(WHITE, abs=0.01)

    def test_title_and_units(self, tree):
        panel = plot_tree(tree)
        assert panel.get_title() == "Regions of the effect of x1 [mg] on pressure [mmHg]"
        assert [text.get_text() for text in panel.texts] == [
            "loss: heterogeneity index [(mmHg)^2 per mg]"
        ]

    @pytest.mark.thorough
    def test_boxes_keep_out_of_each_others_way(self, tree):
        panel = plot_tree(tree)
        panel.figure.canvas.draw()
        extents = [box.patch.get_window_extent() for box in panel.findobj(AnnotationBbox)]
        for number, one in enumerate(extents):
            assert not any(one.overlaps(other) for other in extents[:number])
            assert panel.figure.bbox.contains(one.x0, one.y0)
            assert panel.figure.bbox.contains(one.x1, one.y1)

    @pytest.mark.thorough
    def test_a_split_that_was_rejected(self, local):
        noise = local.assign(
            local_effect=local["local_effect"] + np.random.default_rng(0).normal(size=(600, 4))
        )
        tree = rs.regions(noise, "x1", test="permutation", n_permutations=19, rng=0)
        leaf = int(np.flatnonzero((tree["region"] >= 0) & (tree["best"] != ""))[0])
        texts = [text for text, _ in boxes(plot_tree(tree)).values()]
        (mine,) = [text for text in texts if text.startswith(str(tree["condition"].values[leaf]))]
        drop, p = 100 * float(tree["best_drop"][leaf]), float(tree["pvalue"][leaf])
        assert f"rejected: {tree['best'].values[leaf]}," in mine.replace("\n", " ")
        assert f"drop {drop:.3g} %" in mine
        assert np.isnan(p) or f"p = {p:.2f}" in mine

    def test_tree_without_splits(self, local):
        ((text, _),) = boxes(plot_tree(rs.regions(local, "x2"))).values()
        assert text == "all rows\nn = 600, loss 0\nno split"

    def test_constant_feature(self, local):
        ((text, _),) = boxes(plot_tree(rs.regions(local, "flat"))).values()
        assert text == "all rows\nn = 600\nno split"

    def test_given_axes(self, tree):
        _, ax = plt.subplots()
        assert plot_tree(tree, ax) is ax
        with pytest.raises(TypeError, match="ax must be 1 matplotlib Axes, one; got str"):
            plot_tree(tree, "here")

    def test_something_else(self, local, effect):
        with pytest.raises(TypeError, match=r"tree must be .* regions\(local, feature\)"):
            plot_tree(effect)
        with pytest.raises(ValueError, match="of one feature; this one is of 'x1', 'x2'"):
            plot_tree(rs.all_regions(local, ["x1", "x2"], progress=False))


# --------------------------------------------------------------------------------- interactions


class TestInteractions:
    @pytest.mark.thorough
    def test_colours_are_the_drops(self, found):
        panel = plot_interactions(found)
        (mesh,) = panel.findobj(QuadMesh)
        drawn = np.ma.masked_array(mesh.get_array()).reshape(4, 4)
        drop = found["loss_drop"].values
        np.testing.assert_array_equal(drawn.mask, np.isnan(drop))
        np.testing.assert_array_equal(drawn.compressed(), drop[~np.isnan(drop)])
        assert mesh.get_clim() == (0, 1)

    @pytest.mark.thorough
    def test_texts_are_drops_with_stars(self, found):
        panel = plot_interactions(found)
        texts = {
            (round(text.get_position()[1] - 0.5), round(text.get_position()[0] - 0.5)): text
            for text in panel.texts
        }
        names = found["feature"].values.tolist()
        for row in range(4):
            assert (row, row) not in texts
            for at in set(range(4)) - {row}:
                share = float(found["loss_drop"][row, at])
                star = "*" if found["pvalue_adjusted"][row, at] <= 0.05 else ""
                expected = "–" if np.isnan(share) else f"{100 * share:.0f} %{star}"
                assert texts[row, at].get_text() == expected, (names[row], names[at])
        assert texts[0, 2].get_text().endswith("%*")

    @pytest.mark.thorough
    def test_title_says_what_a_star_is(self, found):
        assert plot_interactions(found).get_title() == (
            "Interactions in the effects on pressure\n* p ≤ 0.05; 39 permutations"
        )
        adjusted = found.copy()
        adjusted["pvalue_adjusted"].attrs["adjust"] = "holm"
        title = plot_interactions(adjusted, level=0.1).get_title()
        assert title.endswith("* p ≤ 0.1, adjusted (holm); 39 permutations")

    def test_without_a_test(self, found):
        untested = found.assign(pvalue_adjusted=found["pvalue_adjusted"] * np.nan)
        panel = plot_interactions(untested)
        assert panel.get_title().endswith("no test was made")
        assert not any("*" in text.get_text() for text in panel.texts)

    @pytest.mark.thorough
    def test_labels(self, found):
        panel = plot_interactions(found)
        assert [label.get_text() for label in panel.get_xticklabels()] == [
            *("x1", "x2", "x3", "flat"),
        ]
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert labels[0] == f"x1\nloss {float(found['loss'][0]):.4g}"
        assert labels[3] == "flat\nconstant"
        assert panel.get_ylabel() == "effect of"
        assert panel.get_xlabel() == "split by"

    @pytest.mark.thorough
    def test_other_columns(self, table, local):
        found = rs.interaction_matrix(
            local.isel(feature=[0]),
            conditioning=table[["summer", "x3"]].rename(columns={"x3": "a long name"}),
            n_permutations=0,
            progress=False,
        )
        panel = plot_interactions(found)
        assert len(panel.texts) == 2
        assert [label.get_rotation() for label in panel.get_xticklabels()] == [30, 30]

    def test_given_axes(self, found):
        _, ax = plt.subplots()
        assert plot_interactions(found, ax) is ax
        with pytest.raises(TypeError, match="ax must be 1 matplotlib Axes, one; got int"):
            plot_interactions(found, 7)

    def test_something_else(self, found, tree):
        with pytest.raises(TypeError, match="interaction_matrix.*; got DataArray"):
            plot_interactions(found["loss_drop"])
        with pytest.raises(ValueError, match="got trees of regions, which regions"):
            plot_interactions(tree)
        with pytest.raises(ValueError, match=r"between 0 and 1.*got 5"):
            plot_interactions(found, level=5)


def test_plots_leave_what_they_draw_alone(local, tree, effect):
    before = [dataset.copy(deep=True) for dataset in (local, tree, effect)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_regions(tree, effect, rs.rhale(local), local)
        plot_tree(tree)
    for dataset, copy in zip((local, tree, effect), before, strict=True):
        assert dataset.identical(copy)


def test_panels_hold_the_same_sources_of_uncertainty():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(0, 1, 200), "g": rng.integers(0, 2, 200)})
    line = rs.Parametric(lambda b, X: b[0] * X["x"] * X["g"], [2.0], [[0.1]])
    local = rs.local_effects(line, X, features=["x"], progress=False)
    tree = rs.regions(local, "x", conditioning=X[["g"]], rng=0)
    parts, whole = rs.regional_rhale(local, tree), rs.rhale(local)
    held = [rs.std_error(one, local, model=line, X=X, progress=False) for one in (parts, whole)]
    with pytest.raises(ValueError, match="errors of the same sources"):
        rs.plots.regions(tree, parts, held[1])
    assert len(rs.plots.regions(tree, *held)) == 1 + parts.sizes["region"]
